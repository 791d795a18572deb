package view

import (
	"cmp"
	"context"
	"fmt"

	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	"github.com/drover-dev/drover/internal/model/addons/index"
	"github.com/drover-dev/drover/internal/model/addons/sources"
	"github.com/drover-dev/drover/internal/registry/artifact"
	"github.com/drover-dev/drover/internal/workload"
	"github.com/drover-dev/drover/internal/workload/tool"
	"github.com/drover-dev/drover/internal/workload/tool/helm"
	"github.com/drover-dev/drover/internal/workload/tool/manifests"
)

// Clusters are the workload clusters of a plane, and the tools to look at them with.
type Clusters struct {
	plane    *Plane
	packages *artifact.Store
	tools    map[addonsv1.Tool]tool.Tool
	input    tool.Input
	open     *workload.Clusters
}

// Clusters prepares to talk to workload clusters. Packages are kept where options say. It must be closed.
func (p *Plane) Clusters(options artifact.Options) (*Clusters, error) {
	packages, err := artifact.Open(options)
	if err != nil {
		return nil, err
	}
	return &Clusters{
		plane: p, packages: packages, input: tool.Input{Sources: sources.New(p.client, p.client)}, open: workload.New(p, workload.Options{}),
		tools: map[addonsv1.Tool]tool.Tool{addonsv1.Helm: helm.New(packages), addonsv1.Manifests: manifests.New(packages)},
	}, nil
}

// Close ends all connections.
func (c *Clusters) Close() {
	c.open.Close()
	c.packages.Close()
}

// tool is the one that a release is made with.
func (c *Clusters) tool(r *addonsv1.HelmReleaseProxy) (tool.Tool, error) {
	t := c.tools[cmp.Or(r.Spec.Tool, addonsv1.Helm)]
	if t == nil {
		return nil, fmt.Errorf("there is no tool %q", r.Spec.Tool)
	}
	return t, nil
}

// Release finds the HelmReleaseProxy of an add-on on a cluster.
func (p *Plane) Release(ctx context.Context, hcp *addonsv1.HelmChartProxy, cluster string) (*addonsv1.HelmReleaseProxy, error) {
	all, err := index.Releases{Reader: p.client}.OfChart(ctx, ctrlclient.ObjectKeyFromObject(hcp))
	if err != nil {
		return nil, err
	}
	for i := range all {
		if all[i].Spec.ClusterRef.Name == cluster {
			return &all[i], nil
		}
	}
	return nil, fmt.Errorf("add-on %q has no release on cluster %q: see `drover addon status %s` for where it has", hcp.Name, cluster, hcp.Name)
}

// reverter is the tool of a release, with a connection to its cluster.
func (c *Clusters) reverter(ctx context.Context, r *addonsv1.HelmReleaseProxy) (tool.Reverter, *workload.Cluster, error) {
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

// History are the revisions of a release that its cluster keeps, the newest first.
func (c *Clusters) History(ctx context.Context, r *addonsv1.HelmReleaseProxy) ([]tool.Revision, error) {
	back, cluster, err := c.reverter(ctx, r)
	if err != nil {
		return nil, err
	}
	return back.History(ctx, cluster, tool.ID{Namespace: r.Spec.ReleaseNamespace, Name: r.Spec.ReleaseName})
}

// Revert takes a release on a cluster back to a revision, the one before the current if that is 0.
func (c *Clusters) Revert(ctx context.Context, r *addonsv1.HelmReleaseProxy, revision int) (tool.State, error) {
	back, cluster, err := c.reverter(ctx, r)
	if err != nil {
		return tool.State{}, err
	}
	want := tool.Want{ID: tool.ID{Namespace: r.Spec.ReleaseNamespace, Name: r.Spec.ReleaseName}, Options: r.Spec.Options}
	return back.Revert(ctx, cluster, want, revision)
}
