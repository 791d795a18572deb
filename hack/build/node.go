package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/drover-dev/drover/internal/kube/build"
	"github.com/drover-dev/drover/internal/kube/node"
)

// nodeJobs build the programs of a machine, then the machine image.
func (o options) nodeJobs(ctx context.Context) ([]build.Job, error) {
	all, err := nodeTargets(o.source)
	if err != nil {
		return nil, err
	}
	c, err := node.DefaultCache()
	if err != nil {
		return nil, err
	}
	jobs, made := []build.Job{{
		Label: "Debian packages",
		Fetch: func(ctx context.Context, _ *build.Task) error { return o.ensurePackages(ctx, o.nodePackages()) },
	}}, make([]node.Part, len(all))
	for i, t := range all {
		jobs = append(jobs, partJob(c, t, &made[i]))
	}
	jobs = append(jobs, build.Job{
		Label: "programs of a machine",
		Finish: func(ctx context.Context, _ *build.Task) error {
			programs, err := c.MakePrograms(ctx, made)
			if err == nil {
				o.progress.Print("Programs of a machine: %s", programs.Dir)
			}
			return err
		},
	})
	if !o.image {
		return jobs, nil
	}
	images, err := o.imageJobs(ctx)
	return append(jobs, images...), err
}

// partJob compiles one target into the cache, and describes it in part.
func partJob(c node.Cache, t build.Target, part *node.Part) build.Job {
	return build.Job{
		Label: t.Label,
		Fetch: func(ctx context.Context, task *build.Task) error {
			b := build.Builder{Task: task}
			key, err := b.Key(ctx, []build.Target{t})
			if err != nil {
				return err
			}
			*part = node.Part{Key: key, Compile: func(ctx context.Context, dir string) error { return b.Compile(ctx, t, dir) }}
			if c.HasPart(*part) {
				return nil
			}
			return b.FetchTarget(ctx, t)
		},
		Compile: func(ctx context.Context, _ *build.Task) error { return c.MakePart(ctx, *part) },
	}
}

// imageJobs build an image for the first selected version of Kubernetes, which must be built by
// then.
func (o options) imageJobs(ctx context.Context) ([]build.Job, error) {
	b, err := o.builder()
	if err != nil {
		return nil, err
	}
	releases, err := o.releases(ctx, b)
	if err != nil {
		return nil, err
	}
	return []build.Job{{
		Label: "machine image for " + releases[0].String(),
		Finish: func(ctx context.Context, t *build.Task) error {
			t.Doing("Assembling the")
			b, err := node.NewBuilder(releases[0].Version, slog.New(slog.DiscardHandler))
			if err != nil {
				return err
			}
			image, err := b.Image(ctx)
			if err == nil {
				o.progress.Print("Machine image for Kubernetes %s: %s", image.Kubernetes, image.Dir)
			}
			return err
		},
	}}, nil
}

// nodeTargets returns the programs with the versions that they report.
func nodeTargets(source string) ([]build.Target, error) {
	if _, err := os.Stat(source); err != nil {
		return nil, fmt.Errorf("finding the source: %w: run this in the root of the checkout, or set --source", err)
	}
	module := filepath.Join(source, "node")
	versions, err := requirements(filepath.Join(module, "go.mod"))
	if err != nil {
		return nil, err
	}
	const (
		containerd = "github.com/containerd/containerd/v2"
		runc       = "github.com/opencontainers/runc"
		plugins    = "github.com/containernetworking/plugins"
	)
	strip := func(settings ...string) string {
		flags := "-ldflags=-s -w"
		for _, s := range settings {
			flags += " -X " + s
		}
		return flags
	}
	return []build.Target{
		{
			Label: "containerd and CNI plugins", Source: module,
			Packages: []string{
				containerd + "/cmd/containerd", containerd + "/cmd/containerd-shim-runc-v2", containerd + "/cmd/ctr",
				plugins + "/plugins/main/bridge", plugins + "/plugins/main/loopback", plugins + "/plugins/ipam/host-local",
				plugins + "/plugins/main/ptp", plugins + "/plugins/meta/portmap", "./pause",
			},
			Flags: []string{
				"-tags=no_btrfs,no_zfs,no_devmapper",
				strip(containerd+"/version.Version="+versions[containerd], plugins+"/pkg/utils/buildversion.BuildVersion="+versions[plugins]),
			},
		},
		{
			Label: "runc", Source: module, Packages: []string{runc}, C: true,
			Flags: []string{
				"-tags=seccomp,netgo,osusergo",
				strip("main.version="+strings.TrimPrefix(versions[runc], "v")) + " -linkmode=external -extldflags=-static",
			},
		},
		{Label: "CoreDNS", Source: filepath.Join(source, "coredns"), Packages: []string{"."}, Flags: []string{strip()}},
		{Label: "network agent", Source: filepath.Dir(source), Packages: []string{"./cmd/cni"}, Flags: []string{strip()}, Crowded: true},
	}, nil
}

// requirements reads the versions that a module file pins.
func requirements(file string) (map[string]string, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	versions := map[string]string{}
	for line := range strings.Lines(string(data)) {
		fields := strings.Fields(strings.TrimPrefix(strings.TrimSpace(line), "require "))
		if len(fields) >= 2 && strings.HasPrefix(fields[1], "v") {
			versions[fields[0]] = fields[1]
		}
	}
	return versions, nil
}
