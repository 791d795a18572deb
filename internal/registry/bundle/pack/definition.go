package pack

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
)

// Definition is what a bundle is made of: a small YAML file.
type Definition struct {
	// KubeVersion is the Kubernetes minor that the bundle is for, such as 1.36.
	KubeVersion string `json:"kubeVersion,omitempty"`
	// Build tells bundles for the same minor apart. Each new one has a higher number.
	Build int `json:"build,omitempty"`
	// MinControllerVersion is the oldest Drover that can use the bundle.
	MinControllerVersion string    `json:"minControllerVersion,omitempty"`
	Packages             []Package `json:"packages"`

	// dir is what the names of files are relative to.
	dir string
}

// Package is one of a bundle.
type Package struct {
	// Name is that of its chart, if it is not given.
	Name         string `json:"name,omitempty"`
	WorkloadOnly bool   `json:"workloadonly,omitempty"`
	// Registry is empty for charts that are beside the bundle.
	Registry string `json:"registry,omitempty"`
	// Repository of its charts, charts/NAME if it is not given.
	Repository string `json:"repository,omitempty"`
	// Versions has the latest first.
	Versions []Version `json:"versions"`
}

// Version is one of a package.
type Version struct {
	// Chart is a directory or an archive.
	Chart string `json:"chart"`
	// KubeVersions are those that the version is for, all if there are none.
	KubeVersions []string `json:"kubeVersions,omitempty"`
	// Schema is a file, values.schema.json of the chart if it is not given.
	Schema       string                     `json:"schema,omitempty"`
	Images       []packagesv1.VersionImages `json:"images,omitempty"`
	Dependencies []string                   `json:"dependencies,omitempty"`
}

// ReadDefinition reads a file.
func ReadDefinition(file string) (*Definition, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading what the bundle is made of: %w", err)
	}
	d := &Definition{dir: filepath.Dir(file)}
	if err := yaml.UnmarshalStrict(text, d); err != nil {
		return nil, fmt.Errorf("reading %q: %w", file, err)
	}
	return d, nil
}

// FromDirectory takes each chart in a directory, packed or not, for a package.
func FromDirectory(dir string) (*Definition, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("reading what the bundle is made of: %w", err)
	}
	d := &Definition{dir: dir}
	for _, entry := range entries {
		_, err := os.Stat(filepath.Join(dir, entry.Name(), "Chart.yaml"))
		if archive := strings.HasSuffix(entry.Name(), ".tgz"); archive != entry.IsDir() && (archive || err == nil) {
			d.Packages = append(d.Packages, Package{Versions: []Version{{Chart: entry.Name()}}})
		}
	}
	if len(d.Packages) == 0 {
		return nil, fmt.Errorf("there is no chart in %q: a chart is a directory with a Chart.yaml, or a .tgz", dir)
	}
	return d, nil
}

// forKubernetes leaves out versions that are not for the minor, and packages without any.
func (d *Definition) forKubernetes() []Package {
	var out []Package
	for _, p := range d.Packages {
		p.Versions = slices.DeleteFunc(slices.Clone(p.Versions), func(v Version) bool {
			return len(v.KubeVersions) > 0 && !slices.Contains(v.KubeVersions, d.KubeVersion)
		})
		if len(p.Versions) > 0 {
			out = append(out, p)
		}
	}
	return out
}
