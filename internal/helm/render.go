package helm

import (
	"fmt"
	"path"
	"strings"

	"helm.sh/helm/v4/pkg/chart/common"
	commonutil "helm.sh/helm/v4/pkg/chart/common/util"
	chartv2 "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
	"helm.sh/helm/v4/pkg/engine"
	releaseutil "helm.sh/helm/v4/pkg/release/v1/util"
)

// Release is what a chart is rendered as.
type Release struct {
	Name      string
	Namespace string
	// Kubernetes is the version that the objects are for.
	Kubernetes string
	// Values go on top of those of the chart.
	Values map[string]any
}

// Render returns the objects of the chart in a directory or an archive, one YAML
// document each, in the order in which Helm would make them. The same input
// gives the same output: templates can't look at a cluster. A chart with hooks
// is refused, for they mean nothing to someone who only applies objects.
func Render(location string, r Release) ([]string, error) {
	chart, err := loader.Load(location)
	if err != nil {
		return nil, fmt.Errorf("loading chart %q: %w", location, err)
	}
	documents, err := render(chart, r)
	if err != nil {
		return nil, fmt.Errorf("rendering chart %q: %w", chart.Name(), err)
	}
	return documents, nil
}

func render(chart *chartv2.Chart, r Release) ([]string, error) {
	capabilities, err := capabilitiesFor(chart, r.Kubernetes)
	if err != nil {
		return nil, err
	}
	if err := chartutil.ProcessDependencies(chart, r.Values); err != nil {
		return nil, err
	}
	options := common.ReleaseOptions{Name: r.Name, Namespace: r.Namespace, Revision: 1, IsInstall: true}
	values, err := commonutil.ToRenderValues(chart, r.Values, options, capabilities)
	if err != nil {
		return nil, err
	}
	files, err := engine.Engine{}.Render(chart, values)
	if err != nil {
		return nil, err
	}
	return documents(chart, files)
}

// capabilitiesFor refuses a version that the chart is not for.
func capabilitiesFor(chart *chartv2.Chart, kubernetes string) (*common.Capabilities, error) {
	version, err := common.ParseKubeVersion(kubernetes)
	if err != nil {
		return nil, fmt.Errorf("reading the Kubernetes version %q: %w", kubernetes, err)
	}
	if want := chart.Metadata.KubeVersion; want != "" && !chartutil.IsCompatibleRange(want, version.String()) {
		return nil, fmt.Errorf("it needs Kubernetes %s, this is %s", want, version)
	}
	c := common.DefaultCapabilities.Copy()
	c.KubeVersion = *version
	return c, nil
}

// documents puts custom kinds first and leaves out notes for people.
func documents(chart *chartv2.Chart, files map[string]string) ([]string, error) {
	var out []string
	for _, crd := range chart.CRDObjects() {
		out = append(out, strings.TrimSpace(string(crd.File.Data)))
	}
	for name := range files {
		if path.Base(name) == "NOTES.txt" {
			delete(files, name)
		}
	}
	hooks, manifests, err := releaseutil.SortManifests(files, nil, releaseutil.InstallOrder)
	if err != nil {
		return nil, err
	}
	if len(hooks) > 0 {
		return nil, fmt.Errorf("%q is a hook: install the chart with Helm", hooks[0].Path)
	}
	for _, m := range manifests {
		out = append(out, strings.TrimSpace(m.Content))
	}
	return out, nil
}
