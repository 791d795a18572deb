package main

import (
	"cmp"
	"debug/buildinfo"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdx/v2/common"
	spdx "github.com/spdx/tools-golang/spdx/v2/v2_3"

	"github.com/drover-dev/drover/internal/kube/payload"
	"github.com/drover-dev/drover/internal/operate/release"
)

// project is where Drover comes from; it starts the names of its documents.
const project = "https://github.com/drover-dev/drover"

// program is a program of a release with the modules it was built from.
type program struct {
	name    string
	version string // of its module; empty for programs of Drover
	goes    string // version of Go
	modules []debug.Module
}

// readPrograms reads the programs of one platform, drover first, and Kubernetes inside drover.
func readPrograms(dir string, names []string) ([]program, error) {
	var programs []program
	for _, name := range names {
		p, err := readProgram(path.Base(name), filepath.Join(dir, name))
		if err != nil {
			return nil, err
		}
		programs = append(programs, p)
	}
	kube, err := readPayload(filepath.Join(dir, names[0]))
	if err != nil {
		return nil, err
	}
	return append(programs, kube...), nil
}

func readProgram(name, file string) (program, error) {
	info, err := buildinfo.ReadFile(file)
	if err != nil {
		return program{}, fmt.Errorf("reading the modules of %q: %w", file, err)
	}
	p := program{name: name, goes: info.GoVersion}
	modules := info.Deps
	// Programs of others belong to a released module, which scanners compare with advisories.
	if v := info.Main.Version; v != "" && v != "(devel)" {
		p.version = v
		modules = append(modules, &info.Main)
	}
	for _, m := range modules {
		if m.Replace != nil {
			m = m.Replace
		}
		p.modules = append(p.modules, debug.Module{Path: m.Path, Version: m.Version})
	}
	return p, nil
}

// readPayload reads the program inside an executable, if there is one.
func readPayload(executable string) ([]program, error) {
	inside, err := payload.Open(executable)
	if errors.Is(err, payload.ErrNone) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	temp, err := os.CreateTemp("", "drover-payload-*")
	if err != nil {
		return nil, err
	}
	defer os.Remove(temp.Name())
	if err := errors.Join(inside.Unpack(temp), temp.Close()); err != nil {
		return nil, err
	}
	p, err := readProgram("kubernetes", temp.Name())
	return []program{p}, err
}

// document lists everything inside an archive.
func (o options) document(sum release.Checksum, programs []program) *spdx.Document {
	d := &spdx.Document{
		SPDXVersion: spdx.Version, DataLicense: spdx.DataLicense, SPDXIdentifier: "DOCUMENT",
		DocumentName:      sum.Name,
		DocumentNamespace: fmt.Sprintf("%s/spdx/%s/%s", project, sum.Name, sum.SHA256),
		CreationInfo: &spdx.CreationInfo{
			Created:  o.date.UTC().Format(time.RFC3339),
			Creators: []common.Creator{{CreatorType: "Tool", Creator: "drover-release-" + o.source.Version}},
		},
	}
	root := o.archivePackage(sum)
	d.Packages = append(d.Packages, root)
	d.Relationships = append(d.Relationships, relation("DOCUMENT", common.TypeRelationshipDescribe, root.PackageSPDXIdentifier))
	for _, p := range programs {
		o.addProgram(d, root.PackageSPDXIdentifier, p)
	}
	for _, m := range allModules(programs) {
		d.Packages = append(d.Packages, modulePackage(m))
	}
	return d
}

func (o options) archivePackage(sum release.Checksum) *spdx.Package {
	p := newPackage("archive", sum.Name, o.source.Version)
	p.PackageFileName = sum.Name
	p.PackageLicenseDeclared = "Apache-2.0"
	p.PackageChecksums = []common.Checksum{{Algorithm: common.SHA256, Value: sum.SHA256}}
	return p
}

func (o options) addProgram(d *spdx.Document, root common.ElementID, p program) {
	this := newPackage("program-"+p.name, p.name, cmp.Or(p.version, o.source.Version))
	d.Packages = append(d.Packages, this)
	d.Relationships = append(d.Relationships, relation(root, common.TypeRelationshipContains, this.PackageSPDXIdentifier))
	for _, m := range withGo(p) {
		d.Relationships = append(d.Relationships, relation(this.PackageSPDXIdentifier, common.TypeRelationshipDependsOn, moduleID(m)))
	}
}

// withGo returns the modules of a program and the standard library.
func withGo(p program) []debug.Module {
	return append(slices.Clone(p.modules), debug.Module{Path: "stdlib", Version: strings.TrimPrefix(p.goes, "go")})
}

// allModules returns the modules of all programs, each once.
func allModules(programs []program) []debug.Module {
	var all []debug.Module
	for _, p := range programs {
		all = append(all, withGo(p)...)
	}
	slices.SortFunc(all, func(a, b debug.Module) int {
		return cmp.Or(strings.Compare(a.Path, b.Path), strings.Compare(a.Version, b.Version))
	})
	return slices.CompactFunc(all, func(a, b debug.Module) bool { return a.Path == b.Path && a.Version == b.Version })
}

func modulePackage(m debug.Module) *spdx.Package {
	p := newPackage("", m.Path, m.Version)
	p.PackageSPDXIdentifier = moduleID(m)
	p.PackageExternalReferences = []*spdx.PackageExternalReference{{
		Category: common.CategoryPackageManager, RefType: common.TypePackageManagerPURL,
		Locator: "pkg:golang/" + m.Path + "@" + strings.ReplaceAll(m.Version, "+", "%2B"),
	}}
	return p
}

func newPackage(id, name, version string) *spdx.Package {
	return &spdx.Package{
		PackageSPDXIdentifier: elementID(id), PackageName: name, PackageVersion: version,
		PackageDownloadLocation: "NOASSERTION", PackageLicenseConcluded: "NOASSERTION",
		PackageLicenseDeclared: "NOASSERTION", PackageCopyrightText: "NOASSERTION",
	}
}

func moduleID(m debug.Module) common.ElementID {
	return elementID("module-" + m.Path + "-" + m.Version)
}

// elementID replaces what SPDX does not allow in an identifier. Paths that differ stay different.
func elementID(id string) common.ElementID {
	return common.ElementID(strings.Map(func(r rune) rune {
		if r == '.' || r == '-' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '-'
	}, strings.ReplaceAll(id, "/", "--")))
}

func relation(a common.ElementID, kind string, b common.ElementID) *spdx.Relationship {
	return &spdx.Relationship{
		RefA: common.MakeDocElementID("", string(a)), RefB: common.MakeDocElementID("", string(b)), Relationship: kind,
	}
}

func writeDocument(file string, d *spdx.Document) error {
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	return errors.Join(json.Write(d, out, json.Indent(" ")), out.Close())
}
