package helm

import (
	"errors"
	"fmt"
	"path"
	"strings"

	"helm.sh/helm/v4/pkg/chart/common"
	commonutil "helm.sh/helm/v4/pkg/chart/common/util"
	chartv2 "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
	"helm.sh/helm/v4/pkg/engine"
	releasev1 "helm.sh/helm/v4/pkg/release/v1"
	releaseutil "helm.sh/helm/v4/pkg/release/v1/util"
)

// Release is the release that a chart is rendered for.
type Release struct {
	Name      string
	Namespace string
	// Kubernetes is the version of the target cluster.
	Kubernetes string
	// Values override those of the chart.
	Values map[string]any
}

// Render returns the objects of the chart in a directory or an archive, one YAML document each, in
// Helm's installation order. The output is deterministic: templates can't look up objects. It
// rejects charts with hooks, which can't run when objects are only applied.
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
	version, err := common.ParseKubeVersion(r.Kubernetes)
	if err != nil {
		return nil, fmt.Errorf("parsing Kubernetes version %q: %w", r.Kubernetes, err)
	}
	capabilities := common.DefaultCapabilities.Copy()
	capabilities.KubeVersion = *version
	if err := process(chart, r.Values); err != nil {
		return nil, err
	}
	rendered, err := rendering{
		chart: chart, values: r.Values, capabilities: capabilities,
		release: common.ReleaseOptions{Name: r.Name, Namespace: r.Namespace, Revision: 1, IsInstall: true},
	}.run()
	if err != nil {
		return nil, err
	}
	if len(rendered.hooks) > 0 {
		return nil, fmt.Errorf("%q is a hook, which is not supported here; install the chart with Helm", rendered.hooks[0].Path)
	}
	var out []string
	for _, crd := range chart.CRDObjects() {
		out = append(out, strings.TrimSpace(string(crd.File.Data)))
	}
	for _, m := range rendered.manifests {
		out = append(out, strings.TrimSpace(m.Content))
	}
	return out, nil
}

// process enables the dependencies of a chart according to values. It must be called once per
// chart.
func process(chart *chartv2.Chart, values map[string]any) error {
	if chart.Metadata.Type == "library" {
		return errors.New("library charts can't be installed")
	}
	if err := missingDependency(chart); err != nil {
		return err
	}
	return chartutil.ProcessDependencies(chart, values)
}

// rendering has all inputs of a rendering.
type rendering struct {
	// chart has been processed.
	chart        *chartv2.Chart
	values       map[string]any
	release      common.ReleaseOptions
	capabilities *common.Capabilities
	// lookup is nil if templates can't look up objects.
	lookup   engine.ClientProvider
	subNotes bool
}

type rendered struct {
	hooks []*releasev1.Hook
	// manifests are in installation order.
	manifests []releaseutil.Manifest
	notes     string
}

func (r rendering) run() (*rendered, error) {
	if want := r.chart.Metadata.KubeVersion; want != "" && !chartutil.IsCompatibleRange(want, r.capabilities.KubeVersion.String()) {
		return nil, fmt.Errorf("requires Kubernetes %s, cluster runs %s", want, &r.capabilities.KubeVersion)
	}
	isolateSchemas(r.chart)
	values, err := commonutil.ToRenderValues(r.chart, r.values, r.release, r.capabilities)
	if err != nil {
		return nil, err
	}
	files, err := r.files(values)
	if err != nil {
		return nil, err
	}
	out := &rendered{notes: r.takeNotes(files)}
	out.hooks, out.manifests, err = releaseutil.SortManifests(files, nil, releaseutil.InstallOrder)
	return out, err
}

// missingDependency rejects charts that lack a dependency.
func missingDependency(chart *chartv2.Chart) error {
	have := map[string]bool{}
	for _, d := range chart.Dependencies() {
		have[d.Name()] = true
	}
	for _, d := range chart.Metadata.Dependencies {
		if !have[d.Name] {
			return fmt.Errorf("dependency %q is missing from the charts directory", d.Name)
		}
	}
	return nil
}

func (r rendering) files(values common.Values) (map[string]string, error) {
	if r.lookup != nil {
		return engine.RenderWithClientProvider(r.chart, values, r.lookup)
	}
	return engine.Engine{}.Render(r.chart, values)
}

// takeNotes removes the notes from files and returns them.
func (r rendering) takeNotes(files map[string]string) string {
	const notes = "NOTES.txt"
	own := path.Join(r.chart.Name(), "templates", notes)
	text := files[own]
	for _, name := range sortedKeys(files) {
		if path.Base(name) != notes {
			continue
		}
		if r.subNotes && name != own {
			text += "\n" + files[name]
		}
		delete(files, name)
	}
	return text
}

// manifestText returns manifests in the format that Helm stores.
func manifestText(files ...file) string {
	var out strings.Builder
	for _, f := range files {
		fmt.Fprintf(&out, "---\n# Source: %s\n%s\n", f.Name, f.Content)
	}
	return out.String()
}
