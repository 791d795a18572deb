// Command release packs programs that hack/build built into the files of a release, which package
// internal/operate/release describes:
//
//	go run ./hack/release --programs bin/programs --output bin/release --version v0.1.0 \
//	  --commit … --date 2026-01-02T03:04:05Z --key release.key linux/amd64 linux/arm64
//
// The same programs always give the same archives and SBOMs, byte for byte. Without a key the
// release has checksums, but neither signature nor provenance. With a key it is built from a
// commit, not from uncommitted changes, because provenance names the commit.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/drover-dev/drover/config"
	"github.com/drover-dev/drover/internal/kube/flux"
	"github.com/drover-dev/drover/internal/operate/release"
	"github.com/drover-dev/drover/internal/registry/bundle"
)

const components = "provider-components.yaml"

type options struct {
	programs string
	output   string
	image    string
	key      string
	source   release.Source
	date     time.Time
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			os.Exit(2)
		}
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	o := options{source: release.Source{Go: runtime.Version()}}
	fs := flag.NewFlagSet("release", flag.ContinueOnError)
	fs.StringVar(&o.programs, "programs", "bin/programs", "directory with one directory of programs per platform, such as linux_arm64")
	fs.StringVar(&o.output, "output", "bin/release", "directory for the release; replaced")
	fs.StringVar(&o.image, "image", "", "image of the manager in "+components)
	fs.StringVar(&o.key, "key", "", "file with the private key that signs the release")
	fs.StringVar(&o.source.Version, "version", "", "version of the release")
	fs.StringVar(&o.source.Commit, "commit", "", "commit of the release")
	date := fs.String("date", "", "time of the commit, in RFC 3339")
	if err := fs.Parse(args); err != nil {
		return err
	}
	var err error
	if o.date, err = time.Parse(time.RFC3339, *date); err != nil {
		return fmt.Errorf("parsing --date: %w", err)
	}
	if fs.NArg() == 0 || o.source.Version == "" || o.source.Commit == "" || o.image == "" {
		return errors.New("--version, --commit, --image and at least one platform are required")
	}
	if o.key != "" && strings.Contains(o.source.Version, ".dirty") {
		return fmt.Errorf("signing version %q: it has uncommitted changes, but provenance would name commit %q; commit them first", o.source.Version, o.source.Commit)
	}
	return o.build(fs.Args())
}

// build writes the release into a new directory first, so that a failure leaves the old one.
func (o options) build(platforms []string) error {
	temp := o.output + ".new"
	if err := errors.Join(os.RemoveAll(temp), os.MkdirAll(temp, 0o755)); err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	var names []string
	for _, platform := range platforms {
		more, err := o.pack(temp, platform)
		if err != nil {
			return fmt.Errorf("packing programs for %s: %w", platform, err)
		}
		names = append(names, more...)
	}
	if err := os.WriteFile(filepath.Join(temp, components), config.Render(o.image), 0o644); err != nil {
		return err
	}
	if err := o.sign(temp, append(names, components)); err != nil {
		return err
	}
	if err := os.RemoveAll(o.output); err != nil {
		return err
	}
	return os.Rename(temp, o.output)
}

func (o options) sign(dir string, names []string) error {
	if o.key == "" {
		fmt.Fprintln(os.Stderr, "release: not signed, because no key is given (SIGNING_KEY=file)")
		return release.WriteChecksums(dir, names)
	}
	key, err := bundle.ReadPrivateKey(o.key)
	if err != nil {
		return err
	}
	return release.Sign(dir, names, o.source, key)
}

// programNames returns the paths of the programs in an archive, drover first.
func programNames() []string {
	names := []string{"drover", "clusterctl"}
	for _, c := range flux.Controllers() {
		names = append(names, path.Join(flux.Dir, c.Name))
	}
	return names
}

// pack writes archive and SBOM of one platform and returns their names.
func (o options) pack(dir, platform string) ([]string, error) {
	suffix := strings.ReplaceAll(platform, "/", "_")
	programs := filepath.Join(o.programs, suffix)
	parts, err := readPrograms(programs, programNames())
	if err != nil {
		return nil, err
	}
	if err := checkControllers(programs); err != nil {
		return nil, err
	}
	packed := fmt.Sprintf("drover_%s_%s.tar.gz", o.source.Version, suffix)
	if err := o.archive(programs, strings.TrimSuffix(packed, ".tar.gz")).write(filepath.Join(dir, packed)); err != nil {
		return nil, err
	}
	sum, err := release.Sum(filepath.Join(dir, packed))
	if err != nil {
		return nil, err
	}
	listed := sum.Name + ".spdx.json"
	return []string{packed, listed}, writeDocument(filepath.Join(dir, listed), o.document(sum, parts))
}

// checkControllers rejects Flux controllers that drover would reject, such as those of an earlier
// build.
func checkControllers(programs string) error {
	for _, c := range flux.Controllers() {
		if err := c.Check(filepath.Join(programs, flux.Dir, c.Name)); err != nil {
			return err
		}
	}
	return nil
}

// archive describes the archive of the programs in a directory.
func (o options) archive(programs, prefix string) archive {
	a := archive{prefix: prefix, time: o.date}
	for _, name := range programNames() {
		a.files = append(a.files, file{name: name, path: filepath.Join(programs, name), mode: 0o755})
	}
	for _, text := range []string{"CHANGELOG.md", "LICENSE", "README.md"} {
		a.files = append(a.files, file{name: text, path: text, mode: 0o644})
	}
	return a
}
