package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/drover-dev/drover/internal/kube/build"
)

// clusterAPI is the module whose clusterctl is built.
const clusterAPI = "sigs.k8s.io/cluster-api"

func (o options) droverJobs(context.Context) ([]build.Job, error) {
	return []build.Job{o.programJob("drover", "./cmd/drover", o.ldflags)}, nil
}

func (o options) managerJobs(context.Context) ([]build.Job, error) {
	return []build.Job{o.programJob("manager", "./cmd/manager", o.ldflags)}, nil
}

// clusterctlJobs build upstream's program, which reports the version of its module.
func (o options) clusterctlJobs(ctx context.Context) ([]build.Job, error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Version}}", clusterAPI).Output()
	if err != nil {
		return nil, fmt.Errorf("reading the version of Cluster API: %w", err)
	}
	return []build.Job{o.programJob("clusterctl", clusterAPI+"/cmd/clusterctl", clusterctlFlags(strings.TrimSpace(string(out))))}, nil
}

func clusterctlFlags(version string) string {
	numbers := strings.SplitN(strings.TrimPrefix(version, "v"), ".", 3)
	flags := "-s -w"
	for i, name := range []string{"gitMajor", "gitMinor"} {
		flags += fmt.Sprintf(" -X %s/version.%s=%s", clusterAPI, name, numbers[i])
	}
	return flags + fmt.Sprintf(" -X %s/version.gitVersion=%s", clusterAPI, version)
}

// programJob builds a program of Drover's own module into the directory for programs.
func (o options) programJob(name, pkg, ldflags string) build.Job {
	t := build.Target{Label: name, Source: ".", Packages: []string{pkg}, Flags: []string{"-ldflags=" + ldflags}}
	return build.Job{
		Label: name,
		Fetch: func(ctx context.Context, task *build.Task) error {
			return build.Builder{Task: task, Platform: o.platform}.FetchTarget(ctx, t)
		},
		Compile: func(ctx context.Context, task *build.Task) error {
			if err := os.MkdirAll(o.bin, 0o755); err != nil {
				return err
			}
			return build.Builder{Task: task, Platform: o.platform}.Compile(ctx, t, o.bin)
		},
	}
}
