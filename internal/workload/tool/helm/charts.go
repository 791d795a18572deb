package helm

import (
	"bytes"
	"context"
	"fmt"

	chartv2 "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"k8s.io/utils/lru"

	"github.com/drover-dev/drover/internal/registry/artifact"
	"github.com/drover-dev/drover/internal/workload/tool"
)

// keptCharts is how many parsed charts stay in memory. A fleet installs the same few at a time, and
// large ones take megabytes.
const keptCharts = 8

// Fetcher returns archives of charts. artifact.Store implements it.
type Fetcher interface {
	Fetch(ctx context.Context, ref artifact.Ref, resolved artifact.Resolved) ([]byte, error)
}

// charts parses each archive once while it is in use.
type charts struct {
	fetcher Fetcher
	parsed  *lru.Cache
}

func newCharts(f Fetcher) *charts { return &charts{fetcher: f, parsed: lru.New(keptCharts)} }

// load returns a chart that the caller may modify.
func (c *charts) load(ctx context.Context, ref artifact.Ref, resolved artifact.Resolved) (*chartv2.Chart, error) {
	if chart, ok := c.parsed.Get(resolved.Digest); ok {
		return clone(chart.(*chartv2.Chart)), nil // nothing else is put there
	}
	archive, err := c.fetcher.Fetch(ctx, ref, resolved)
	if err != nil {
		return nil, fmt.Errorf("fetching chart %q: %w", ref.Name, err)
	}
	var chart *chartv2.Chart
	if err = checkArchive(archive); err == nil {
		chart, err = loader.LoadArchive(bytes.NewReader(archive))
	}
	if err != nil {
		return nil, &tool.TerminalError{Err: fmt.Errorf("reading chart %q: %w", ref.Name, err)}
	}
	if resolved.Digest != "" {
		c.parsed.Add(resolved.Digest, chart)
	}
	return clone(chart), nil
}

// Describe returns what the chart says about Kubernetes. It loads a chart that was just installed
// from memory.
func (e *Engine) Describe(ctx context.Context, want tool.Want) (tool.Description, error) {
	chart, err := e.charts.load(ctx, want.Package, want.Resolved)
	if err != nil {
		return tool.Description{}, err
	}
	return tool.Description{Kubernetes: chart.Metadata.KubeVersion, Annotations: chart.Metadata.Annotations}, nil
}

// clone copies what processing dependencies modifies: the tree, which parts are enabled, and their
// values. Templates and files are shared.
func clone(chart *chartv2.Chart) *chartv2.Chart {
	out := *chart
	out.Raw = nil
	metadata := *chart.Metadata
	metadata.Dependencies = nil
	for _, d := range chart.Metadata.Dependencies {
		dependency := *d
		metadata.Dependencies = append(metadata.Dependencies, &dependency)
	}
	out.Metadata = &metadata
	out.SetDependencies()
	for _, d := range chart.Dependencies() {
		out.AddDependency(clone(d))
	}
	return &out
}
