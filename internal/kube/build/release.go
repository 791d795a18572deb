package build

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

const (
	kubernetesModule = "k8s.io/kubernetes"
	defaultModFile   = "go.mod"
)

// Release is a Kubernetes release that a module file pins.
type Release struct {
	Version string
	ModFile string // its name in the source directory
}

func (r Release) String() string { return "Kubernetes " + r.Version }

// Minor returns the release without its patch number: "1.36" for v1.36.3.
func (r Release) Minor() string {
	major, minor := r.numbers()
	return major + "." + minor
}

func (r Release) numbers() (major, minor string) {
	parts := strings.SplitN(strings.TrimPrefix(r.Version, "v"), ".", 3)
	if len(parts) < 3 {
		return parts[0], ""
	}
	return parts[0], parts[1]
}

// Releases returns the releases that the source directory can build, the default one first.
func (b Builder) Releases(ctx context.Context) ([]Release, error) {
	files, _ := filepath.Glob(filepath.Join(b.Source, "v*.mod"))
	slices.Sort(files)
	slices.Reverse(files)
	var releases []Release
	for _, file := range append([]string{defaultModFile}, files...) {
		r, err := b.release(ctx, filepath.Base(file))
		if err != nil {
			return nil, err
		}
		releases = append(releases, r)
	}
	return releases, nil
}

// release reads a module file with the go command, which parses it the way the
// build will and costs no dependency.
func (b Builder) release(ctx context.Context, modFile string) (Release, error) {
	out, err := b.goCommand(ctx, "mod", "edit", "-json", modFile).run(nil)
	if err != nil {
		return Release{}, fmt.Errorf("reading %q: %w", filepath.Join(b.Source, modFile), err)
	}
	var file struct {
		Require []struct{ Path, Version string }
	}
	if err := json.Unmarshal(out, &file); err != nil {
		return Release{}, fmt.Errorf("reading %q: %w", filepath.Join(b.Source, modFile), err)
	}
	for _, r := range file.Require {
		if r.Path == kubernetesModule {
			return Release{Version: r.Version, ModFile: modFile}, nil
		}
	}
	return Release{}, fmt.Errorf("reading %q: it does not require %s", filepath.Join(b.Source, modFile), kubernetesModule)
}

// Select returns the release for a version or a minor version, with or without the leading v. The
// empty string selects the default.
func Select(releases []Release, wanted string) (Release, error) {
	bare := strings.TrimPrefix(wanted, "v")
	var known []string
	for _, r := range releases {
		if wanted == "" || bare == r.Minor() || "v"+bare == r.Version {
			return r, nil
		}
		known = append(known, r.Version)
	}
	return Release{}, fmt.Errorf("no module file pins Kubernetes %q: choose one of %s", wanted, strings.Join(known, ", "))
}
