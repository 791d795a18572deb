// Package charts has the charts that ship with Drover, for its registry to offer.
package charts

import (
	"embed"
	"fmt"

	"sigs.k8s.io/yaml"
)

// Files has a directory for each chart. Names that begin with an underscore are templates too.
//
//go:embed all:cni
var Files embed.FS

// Version is that of a chart.
func Version(name string) (string, error) {
	data, err := Files.ReadFile(name + "/Chart.yaml")
	if err != nil {
		return "", fmt.Errorf("reading chart %q: %w", name, err)
	}
	var chart struct {
		Version string `json:"version"`
	}
	if err := yaml.Unmarshal(data, &chart); err != nil {
		return "", fmt.Errorf("reading chart %q: %w", name, err)
	}
	return chart.Version, nil
}
