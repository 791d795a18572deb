package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"

	"github.com/drover-dev/drover/internal/base/atomicfile"
	"github.com/drover-dev/drover/internal/kube/build"
	"github.com/drover-dev/drover/internal/kube/cache"
	"github.com/drover-dev/drover/internal/kube/flux"
)

// fluxJobs build the Flux controllers. Their entries of the cache carry the key of all inputs, so
// that an unchanged module is never compiled again.
func (o options) fluxJobs(context.Context) ([]build.Job, error) {
	source := filepath.Join(o.source, "flux")
	if _, err := os.Stat(source); err != nil {
		return nil, fmt.Errorf("finding the source: %w: run this in the root of the checkout, or set --source", err)
	}
	var jobs []build.Job
	for _, c := range flux.Controllers() {
		store, err := cache.For(c.Name)
		if err != nil {
			return nil, err
		}
		f := fluxBuild{controller: c, cache: store, target: fluxTarget(source, c), platform: o.platform}
		jobs = append(jobs, o.fluxJob(&f))
	}
	return jobs, nil
}

func fluxTarget(source string, c flux.Controller) build.Target {
	return build.Target{Label: c.String(), Source: source, Packages: []string{c.Module}, Flags: []string{"-ldflags=-s -w"}}
}

func (o options) fluxJob(f *fluxBuild) build.Job {
	return build.Job{
		Label: f.target.Label,
		Fetch: f.fetch,
		Compile: func(ctx context.Context, t *build.Task) error {
			e, err := f.compile(ctx, t)
			if err != nil {
				return err
			}
			o.progress.Print("%s: %s", f.target.Label, e.Dir)
			if o.fluxDir == "" {
				return nil
			}
			return copyProgram(e.Binary(), o.fluxDir)
		},
	}
}

// copyProgram copies a program into a directory. It replaces the file there, which may be running.
func copyProgram(program, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	in, err := os.Open(program)
	if err != nil {
		return err
	}
	defer in.Close()
	return atomicfile.Stream(filepath.Join(dir, filepath.Base(program)), 0o755, func(w io.Writer) error {
		_, err := io.Copy(w, in)
		return err
	})
}

// fluxBuild builds one controller.
type fluxBuild struct {
	controller flux.Controller
	cache      cache.Cache
	target     build.Target
	platform   string
	key        string // set by fetch
}

func (f *fluxBuild) builder(t *build.Task) build.Builder {
	return build.Builder{Task: t, Platform: f.platform}
}

func (f *fluxBuild) name() string { return cache.Name(f.controller.Version, f.key) }

// fetch downloads the modules, unless the program is cached.
func (f *fluxBuild) fetch(ctx context.Context, t *build.Task) error {
	var err error
	if f.key, err = f.builder(t).Key(ctx, []build.Target{f.target}); err != nil {
		return err
	}
	if _, cached := f.cache.Get(f.name()); cached {
		return nil
	}
	return f.builder(t).FetchTarget(ctx, f.target)
}

func (f *fluxBuild) compile(ctx context.Context, t *build.Task) (cache.Entry, error) {
	return f.cache.Create(ctx, cache.Request{
		Name:    f.name(),
		Waiting: func() { t.Doing("Waiting for another process to build") },
		Fill: func(ctx context.Context, dir string) (cache.Manifest, error) {
			if err := f.builder(t).Compile(ctx, f.target, dir); err != nil {
				return cache.Manifest{}, err
			}
			manifest := cache.Manifest{Version: f.controller.Version, Key: f.key, Platform: cmp.Or(f.platform, runtime.GOOS+"/"+runtime.GOARCH)}
			return manifest, f.controller.Check(filepath.Join(dir, f.controller.Name))
		},
	})
}
