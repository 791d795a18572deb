package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/drover-dev/drover/internal/kube/build"
	"github.com/drover-dev/drover/internal/kube/cache"
	"github.com/drover-dev/drover/internal/kube/payload"
)

// builder builds Kubernetes.
func (o options) builder() (build.Builder, error) {
	source := filepath.Join(o.source, "kubernetes")
	if _, err := os.Stat(source); err != nil {
		return build.Builder{}, fmt.Errorf("finding the source: %w: run this in the root of the checkout, or set --source", err)
	}
	c, err := cache.Default()
	return build.Builder{Source: source, Cache: c, Platform: o.platform}, err
}

// releases returns the releases that the flags select.
func (o options) releases(ctx context.Context, b build.Builder) ([]build.Release, error) {
	known, err := b.Releases(ctx)
	if err != nil || o.kubernetes == "all" {
		return known, err
	}
	wanted := strings.FieldsFunc(o.kubernetes, func(c rune) bool { return c == ' ' || c == ',' })
	if len(wanted) == 0 {
		wanted = []string{""}
	}
	var chosen []build.Release
	for _, w := range wanted {
		r, err := build.Select(known, w)
		if err != nil {
			return nil, err
		}
		chosen = append(chosen, r)
	}
	return chosen, nil
}

func (o options) kubeJobs(ctx context.Context) ([]build.Job, error) {
	b, err := o.builder()
	if err != nil {
		return nil, err
	}
	releases, err := o.releases(ctx, b)
	if err != nil {
		return nil, err
	}
	var jobs []build.Job
	for _, r := range releases {
		jobs = append(jobs, o.kubeJob(b, r))
	}
	return jobs, nil
}

func (o options) kubeJob(b build.Builder, r build.Release) build.Job {
	return build.Job{
		Label: r.String(),
		Fetch: func(ctx context.Context, t *build.Task) error {
			b.Task = t
			return b.Fetch(ctx, r)
		},
		Compile: func(ctx context.Context, t *build.Task) error {
			b.Task = t
			e, err := b.Build(ctx, r)
			if err == nil {
				o.progress.Print("%s: %s", r, e.Dir)
			}
			return err
		},
	}
}

// payloadJobs attach the default Kubernetes to drover.
func (o options) payloadJobs(ctx context.Context) ([]build.Job, error) {
	b, err := o.builder()
	if err != nil {
		return nil, err
	}
	known, err := b.Releases(ctx)
	if err != nil {
		return nil, err
	}
	if len(known) == 0 {
		return nil, errors.New("no module file pins a Kubernetes version")
	}
	var jobs []build.Job
	if chosen, err := o.releases(ctx, b); err != nil || !slices.Contains(o.targets, "kube") || !slices.Contains(chosen, known[0]) {
		jobs = append(jobs, o.kubeJob(b, known[0]))
	}
	return append(jobs, build.Job{
		Label: "Kubernetes inside drover",
		Finish: func(ctx context.Context, t *build.Task) error {
			t.Doing("Packing")
			b.Task = t
			e, err := b.Build(ctx, known[0])
			if err != nil {
				return err
			}
			return attach(ctx, filepath.Join(o.bin, "drover"), e)
		},
	}), nil
}

func attach(ctx context.Context, executable string, e cache.Entry) error {
	compressed, err := e.Compressed(ctx, payload.Compress)
	if err != nil {
		return err
	}
	return payload.Attach(executable, compressed, payload.Header{Version: e.Version, Key: e.Key, SHA256: e.SHA256, Size: e.Size})
}
