// Command chart renders one of Drover's charts for Cluster API: a ConfigMap with the chart's
// objects, and a ClusterResourceSet that applies them to every cluster with a label. The output
// depends only on the chart.
//
//	go run ./hack/chart --chart charts/cni --name drover-cni --label cni=drover \
//	    --out templates/cni.yaml
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/template"

	"github.com/drover-dev/drover/internal/base/version"
	"github.com/drover-dev/drover/internal/workload/tool/helm"
)

//go:generate go run . --chart ../../charts/cni --name drover-cni --label cni=drover --out ../../templates/cni.yaml

type options struct {
	chart string
	// name is the name of the release and of the objects on the management plane.
	name  string
	label string
	out   string
}

func main() {
	var o options
	flag.StringVar(&o.chart, "chart", "", "directory of the chart")
	flag.StringVar(&o.name, "name", "", "name of the release")
	flag.StringVar(&o.label, "label", "", "label of the clusters that get it, as key=value")
	flag.StringVar(&o.out, "out", "", "file to write")
	flag.Parse()
	if err := o.run(); err != nil {
		fmt.Fprintln(os.Stderr, "chart:", err)
		os.Exit(1)
	}
}

func (o options) run() error {
	text, err := o.render()
	if err != nil {
		return err
	}
	if there, err := os.ReadFile(o.out); err == nil && string(there) == text {
		return nil // an unchanged file keeps cached test results valid
	}
	return os.WriteFile(o.out, []byte(text), 0o644)
}

func (o options) render() (string, error) {
	key, value, ok := strings.Cut(o.label, "=")
	if !ok || o.name == "" {
		return "", errors.New("--name and --label key=value are required")
	}
	documents, err := helm.Render(o.chart, helm.Release{Name: o.name, Namespace: "kube-system", Kubernetes: version.Kubernetes})
	if err != nil {
		return "", err
	}
	var out strings.Builder
	err = manifest.Execute(&out, map[string]string{
		"Chart": filepath.Base(o.chart), "Name": o.name, "Label": key + ": " + value, "Objects": indent(strings.Join(documents, "\n---\n")),
	})
	return out.String(), err
}

// manifest contains the objects as readable text.
var manifest = template.Must(template.New("manifest").Parse(`# Made from charts/{{.Chart}} by "go generate ./hack/chart"; do not edit. Clusters with
# the label "{{.Label}}" in the namespace that this is applied to get the chart.
apiVersion: addons.cluster.x-k8s.io/v1beta2
kind: ClusterResourceSet
metadata:
  name: {{.Name}}
spec:
  strategy: Reconcile
  clusterSelector:
    matchLabels: { {{- .Label -}} }
  resources:
  - {kind: ConfigMap, name: {{.Name}}}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{.Name}}
data:
  {{.Chart}}.yaml: |
{{.Objects}}
`))

func indent(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if line != "" {
			lines[i] = "    " + line
		}
	}
	return strings.Join(lines, "\n")
}
