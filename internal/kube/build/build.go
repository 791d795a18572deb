// Package build compiles Kubernetes from the modules that kube/kubernetes pins and caches the
// result, once per content, and compiles other programs with the same progress report. Only
// hack/build uses it: a running Drover looks binaries up and never builds. Start at [Run] and
// [Builder.Build].
package build

import (
	"context"
	"path/filepath"
	"runtime"
	"time"

	"github.com/drover-dev/drover/internal/kube"
	"github.com/drover-dev/drover/internal/kube/cache"
)

// Builder builds releases from one source directory.
type Builder struct {
	// Source is the directory with the main package and its module files.
	Source string
	Cache  cache.Cache
	// Platform is the one to build for, such as linux/arm64; empty means this one.
	Platform string
	// Task reports progress; nil reports nothing.
	Task *Task
}

// Build returns the release's entry of the cache, compiling it only if its content is not cached
// yet.
func (b Builder) Build(ctx context.Context, r Release) (cache.Entry, error) {
	in, err := b.inputs(ctx, r)
	if err != nil {
		return cache.Entry{}, err
	}
	return b.Cache.Create(ctx, cache.Request{
		Name:    cache.Name(r.Version, in.key()),
		Waiting: func() { b.Task.Doing("Waiting for another process to build") },
		Fill: func(ctx context.Context, dir string) (cache.Manifest, error) {
			if err := b.compile(ctx, in, dir); err != nil {
				return cache.Manifest{}, err
			}
			return cache.Manifest{
				Version: r.Version, Key: in.key(), Go: in.env["GOVERSION"], Platform: in.env["GOOS"] + "/" + in.env["GOARCH"],
			}, nil
		},
	})
}

// Fetch downloads the modules that Build needs, unless the release is cached.
func (b Builder) Fetch(ctx context.Context, r Release) error {
	in, err := b.inputs(ctx, r)
	if err != nil {
		return err
	}
	if _, cached := b.Cache.Get(cache.Name(r.Version, in.key())); cached {
		return nil
	}
	_, err = b.unit(in).list(ctx, b.Task)
	return err
}

func (b Builder) unit(in inputs) unit {
	return unit{label: in.release.String(), flags: in.flags, packages: []string{"."}, command: b.goCommand}
}

// compile leaves the binary, checked to be the wanted version, in dir.
func (b Builder) compile(ctx context.Context, in inputs, dir string) error {
	binary := kube.Binary{Path: filepath.Join(dir, "kube"), Version: in.release.Version}
	if err := b.unit(in).compile(ctx, b.Task, binary.Path); err != nil {
		return err
	}
	if err := b.check(ctx, binary); err != nil {
		return err
	}
	return kube.Link(dir, "kube")
}

// check catches a version that the linker silently did not set, for example because the variable
// has moved: otherwise kubeadm would fail much later.
// Binaries for other platforms do not run here; the same flags built one that does.
func (b Builder) check(ctx context.Context, binary kube.Binary) error {
	if b.Platform != "" && b.Platform != runtime.GOOS+"/"+runtime.GOARCH {
		return nil
	}
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
