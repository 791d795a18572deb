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
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/drover-dev/drover/config"
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

// pack writes archive and SBOM of one platform and returns their names.
func (o options) pack(dir, platform string) ([]string, error) {
	suffix := strings.ReplaceAll(platform, "/", "_")
	name := fmt.Sprintf("drover_%s_%s", o.source.Version, suffix)
	a := archive{prefix: name, time: o.date}
	programs := []string{"drover", "clusterctl"}
	for _, program := range programs {
		a.files = append(a.files, file{path: filepath.Join(o.programs, suffix, program), mode: 0o755})
	}
	for _, text := range []string{"CHANGELOG.md", "LICENSE", "README.md"} {
		a.files = append(a.files, file{path: text, mode: 0o644})
	}
	packed := name + ".tar.gz"
	if err := a.write(filepath.Join(dir, packed)); err != nil {
		return nil, err
	}
	sum, err := release.Sum(filepath.Join(dir, packed))
	if err != nil {
		return nil, err
	}
	parts, err := readPrograms(filepath.Join(o.programs, suffix), programs)
	if err != nil {
		return nil, err
	}
	listed := sum.Name + ".spdx.json"
	return []string{packed, listed}, writeDocument(filepath.Join(dir, listed), o.document(sum, parts))
}
