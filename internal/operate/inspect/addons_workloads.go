package inspect

import (
	"cmp"
	"context"
	"fmt"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	"github.com/drover-dev/drover/internal/model/addons/index"
	"github.com/drover-dev/drover/internal/model/addons/sources"
	"github.com/drover-dev/drover/internal/registry/artifact"
	"github.com/drover-dev/drover/internal/workload"
	"github.com/drover-dev/drover/internal/workload/tool"
	"github.com/drover-dev/drover/internal/workload/tool/helm"
	"github.com/drover-dev/drover/internal/workload/tool/manifests"
)

// Workloads connects to the workload clusters of a plane.
type Workloads struct {
	plane    *Plane
	packages *artifact.Store
	tools    map[addonsv1.Tool]tool.Tool
	input    tool.Input
	open     *workload.Clusters
}

// Workloads prepares connections to workload clusters. Packages are cached where options say. The
// caller must call Close.
func (p *Plane) Workloads(options artifact.Options) (*Workloads, error) {
	packages, err := artifact.Open(options)
	if err != nil {
		return nil, err
	}
	return &Workloads{
		plane: p, packages: packages, input: tool.Input{Sources: sources.New(p.Client, p.Client)}, open: workload.New(p, workload.Options{}),
		tools: map[addonsv1.Tool]tool.Tool{addonsv1.Helm: helm.New(packages), addonsv1.Manifests: manifests.New(packages)},
	}, nil
}

// Close closes all connections.
func (c *Workloads) Close() {
	c.open.Close()
	c.packages.Close()
}

// tool returns the tool that a release is installed with.
func (c *Workloads) tool(r *addonsv1.HelmReleaseProxy) (tool.Tool, error) {
	t := c.tools[cmp.Or(r.Spec.Tool, addonsv1.Helm)]
	if t == nil {
		return nil, fmt.Errorf("unknown tool %q", r.Spec.Tool)
	}
	return t, nil
}

// reverter returns the tool of a release and a connection to its cluster.
func (c *Workloads) reverter(ctx context.Context, r *addonsv1.HelmReleaseProxy) (tool.Reverter, *workload.Cluster, error) {
	t, err := c.tool(r)
	if err != nil {
		return nil, nil, err
	}
	back, ok := t.(tool.Reverter)
	if !ok {
		return nil, nil, fmt.Errorf("tool %q keeps no revisions", r.Spec.Tool)
	}
	cluster, err := c.open.Get(ctx, index.ClusterKey(r))
	return back, cluster, err
}

// History returns the revisions of a release that its cluster keeps, newest first.
func (c *Workloads) History(ctx context.Context, r *addonsv1.HelmReleaseProxy) ([]tool.Revision, error) {
	back, cluster, err := c.reverter(ctx, r)
	if err != nil {
		return nil, err
	}
	return back.History(ctx, cluster, tool.IDOf(r))
}

// Revert rolls a release back to a revision, or to the previous one if revision is 0.
func (c *Workloads) Revert(ctx context.Context, r *addonsv1.HelmReleaseProxy, revision int) (tool.State, error) {
	back, cluster, err := c.reverter(ctx, r)
	if err != nil {
		return tool.State{}, err
	}
	want := tool.Want{ID: tool.IDOf(r), Options: r.Spec.Options}
	return back.Revert(ctx, cluster, want, revision)
}
