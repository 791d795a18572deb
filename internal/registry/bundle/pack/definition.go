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

// Definition is the YAML file that defines a bundle.
type Definition struct {
	// KubeVersion is the Kubernetes minor version of the bundle, such as 1.36.
	KubeVersion string `json:"kubeVersion,omitempty"`
	// Build is the number of the bundle among those for the same minor version.
	Build int `json:"build,omitempty"`
	// MinControllerVersion is the oldest Drover that can use the bundle.
	MinControllerVersion string    `json:"minControllerVersion,omitempty"`
	Packages             []Package `json:"packages"`

	// dir is the directory that file names are relative to.
	dir string
}

// Package is a package of a bundle.
type Package struct {
	// Name defaults to the name of the chart.
	Name         string `json:"name,omitempty"`
	WorkloadOnly bool   `json:"workloadonly,omitempty"`
	// Registry is empty for charts in the registry of the bundle.
	Registry string `json:"registry,omitempty"`
	// Repository defaults to charts/NAME.
	Repository string `json:"repository,omitempty"`
	// Versions lists the latest version first.
	Versions []Version `json:"versions"`
}

// Version is a version of a package.
type Version struct {
	// Chart is a directory or an archive.
	Chart string `json:"chart"`
	// KubeVersions limits the version to bundles for these Kubernetes versions.
	KubeVersions []string `json:"kubeVersions,omitempty"`
	// Schema is a file. It defaults to values.schema.json of the chart.
	Schema       string                     `json:"schema,omitempty"`
	Images       []packagesv1.VersionImages `json:"images,omitempty"`
	Dependencies []string                   `json:"dependencies,omitempty"`
}

// ReadDefinition reads a definition from a file.
func ReadDefinition(file string) (*Definition, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading the definition of the bundle: %w", err)
	}
	d := &Definition{dir: filepath.Dir(file)}
	if err := yaml.UnmarshalStrict(text, d); err != nil {
		return nil, fmt.Errorf("reading %q: %w", file, err)
	}
	return d, nil
}

// FromDirectory returns a definition with a package for each chart, archive or directory, in a
// directory.
func FromDirectory(dir string) (*Definition, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("reading the definition of the bundle: %w", err)
	}
	d := &Definition{dir: dir}
	for _, entry := range entries {
		_, err := os.Stat(filepath.Join(dir, entry.Name(), "Chart.yaml"))
		if archive := strings.HasSuffix(entry.Name(), ".tgz"); archive != entry.IsDir() && (archive || err == nil) {
			d.Packages = append(d.Packages, Package{Versions: []Version{{Chart: entry.Name()}}})
		}
	}
	if len(d.Packages) == 0 {
		return nil, fmt.Errorf("no charts found in %q: a chart is a directory with a Chart.yaml, or a .tgz archive", dir)
	}
	return d, nil
}

// forKubernetes omits versions for other Kubernetes versions, and packages without versions.
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
