// Package build compiles Kubernetes from the modules that kube/kubernetes pins
// and puts the result into the cache, once per content. It is used by hack/kube
// and by nothing that ships: a Drover that runs only looks binaries up. Start at
// [Builder.Build].
package build

import (
	"context"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"time"

	"github.com/drover-dev/drover/internal/kube"
	"github.com/drover-dev/drover/internal/kube/cache"
)

// Builder builds releases from one source directory.
type Builder struct {
	// Source is the directory with the main package and its module files.
	Source string
	Cache  cache.Cache
	// Progress is told what is going on, in one line that is rewritten if
	// Terminal is set, in a line now and then otherwise.
	Progress io.Writer
	Terminal bool
}

// Build returns the release's entry of the cache, compiling it only if its
// content is not there yet.
func (b Builder) Build(ctx context.Context, r Release) (cache.Entry, error) {
	in, err := b.inputs(ctx, r)
	if err != nil {
		return cache.Entry{}, err
	}
	return b.Cache.Create(ctx, cache.Request{
		Name:    cache.Name(r.Version, in.key()),
		Waiting: func() { fmt.Fprintf(b.Progress, "%s: another process is building it, waiting\n", r) },
		Fill: func(ctx context.Context, dir string) (cache.Manifest, error) {
			if err := b.compile(ctx, r, in, dir); err != nil {
				return cache.Manifest{}, err
			}
			return cache.Manifest{
				Version: r.Version, Key: in.key(), Go: in.env["GOVERSION"], Platform: in.env["GOOS"] + "/" + in.env["GOARCH"],
			}, nil
		},
	})
}

// compile leaves the binary, checked to be what was asked for, in dir.
func (b Builder) compile(ctx context.Context, r Release, in inputs, dir string) error {
	p := newProgress(b.Progress, b.Terminal, r.String())
	defer p.end()
	packages, err := b.dependencies(ctx, r, p)
	if err != nil {
		return err
	}
	binary := kube.Binary{Path: filepath.Join(dir, "kube"), Version: r.Version}
	if err := b.link(ctx, in, binary.Path, packages, p); err != nil {
		return err
	}
	if err := b.check(ctx, binary); err != nil {
		return err
	}
	return kube.Link(dir, "kube")
}

// dependencies returns the packages that make up the binary. The go command
// downloads modules here if it has to.
func (b Builder) dependencies(ctx context.Context, r Release, p *progress) (map[string]bool, error) {
	p.show("reading the module graph")
	downloads := 0
	out, err := b.goCommand(ctx, "list", "-deps", "-modfile="+r.ModFile, ".").run(p, func(line string) bool {
		if _, ok := cutDownload(line); ok {
			downloads++
			p.show(fmt.Sprintf("downloading, %d modules", downloads))
			return true
		}
		return false
	})
	if err != nil {
		return nil, fmt.Errorf("listing the packages of %s: %w", r, err)
	}
	return maps.Collect(lineSet(out)), nil
}

// link compiles what the go command's own cache lacks and links the binary.
func (b Builder) link(ctx context.Context, in inputs, path string, packages map[string]bool, p *progress) error {
	p.show("compiling and linking")
	compiled := 0
	args := append(append([]string{"build"}, in.flags...), "-v", "-o", path, ".")
	_, err := b.goCommand(ctx, args...).run(p, func(line string) bool {
		if !packages[line] {
			return false
		}
		compiled++
		p.show(fmt.Sprintf("compiling, %d of %d packages", compiled, len(packages)))
		return true
	})
	if err != nil {
		return fmt.Errorf("compiling %s: %w", in.release, err)
	}
	return nil
}

// check catches a version that the linker silently did not set, for example
// because the variable has moved: kubeadm would refuse to work much later.
func (b Builder) check(ctx context.Context, binary kube.Binary) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	got, err := binary.Probe(ctx)
	if err != nil {
		return err
	}
	if got != binary.Version {
		return &kube.VersionError{Path: binary.Path, Want: binary.Version, Got: got}
	}
	return nil
}
