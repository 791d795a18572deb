// Package stages lists the add-ons of a cluster that have a stage in a Kubernetes upgrade, and says
// whether each is ready. Start with Reader.
package stages

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/model/addons/index"
	"github.com/drover-dev/drover/internal/model/addons/plan"
	"github.com/drover-dev/drover/internal/model/lockstep"
)

// Kinds of add-ons that aren't HelmChartProxies.
const (
	releaseKind = "HelmReleaseProxy"
	packageKind = "Package"
)

// Reader reads the add-ons of clusters.
type Reader struct {
	client.Reader

	// Indexed reports that the reader is a cache with the indexes of package index.
	Indexed bool
	// Behind returns why a Package hasn't changed to the bundle of a version, or an empty string.
	// Without it, that is not checked.
	Behind func(ctx context.Context, cluster string, p Package, to string) (string, error)
	// Planned reports that the upgrade has not started, so that nothing was rendered for it.
	Planned bool
}

// Package is a Package with its release.
type Package struct {
	*packagesv1.Package

	Release *addonsv1.HelmReleaseProxy
}

// Of returns the add-ons of a cluster that have a stage in an upgrade to a version, sorted by stage
// and name.
func (r Reader) Of(ctx context.Context, cluster *clusterv1.Cluster, to string) ([]lockstep.AddOn, error) {
	releases, err := index.Releases{Reader: r.Reader, Indexed: r.Indexed}.OfCluster(ctx, client.ObjectKeyFromObject(cluster))
	if err != nil {
		return nil, err
	}
	g := &gathering{Reader: r, cluster: cluster, to: to, charts: map[string]*addonsv1.HelmChartProxy{}, installed: map[string]bool{}}
	if err := g.readCharts(ctx); err != nil {
		return nil, err
	}
	for i := range releases {
		if one := &releases[i]; index.Effective(one) {
			if err := g.addRelease(ctx, one); err != nil {
				return nil, err
			}
		}
	}
	g.addMissing()
	slices.SortFunc(g.found, func(a, b lockstep.AddOn) int {
		return cmp.Or(cmp.Compare(slices.Index(lockstep.Stages, a.Stage), slices.Index(lockstep.Stages, b.Stage)), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
	return g.found, nil
}

// gathering collects the add-ons of one cluster.
type gathering struct {
	Reader

	cluster *clusterv1.Cluster
	to      string
	// charts are the HelmChartProxies that select the cluster, by name, and installed those that have
	// a release there.
	charts    map[string]*addonsv1.HelmChartProxy
	installed map[string]bool
	found     []lockstep.AddOn
}

// readCharts lists the HelmChartProxies that select the cluster.
func (g *gathering) readCharts(ctx context.Context) error {
	list := &addonsv1.HelmChartProxyList{}
	if err := g.List(ctx, list, client.InNamespace(g.cluster.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing HelmChartProxies: %w", err)
	}
	for i := range list.Items {
		chart := &list.Items[i]
		selector, err := metav1.LabelSelectorAsSelector(&chart.Spec.ClusterSelector)
		if err == nil && chart.DeletionTimestamp.IsZero() && selector.Matches(labels.Set(g.cluster.Labels)) {
			g.charts[chart.Name] = chart
		}
	}
	return nil
}

// addRelease adds the add-on that a release belongs to.
func (g *gathering) addRelease(ctx context.Context, r *addonsv1.HelmReleaseProxy) error {
	owner := metav1.GetControllerOf(r)
	switch {
	case owner != nil && owner.Kind == plan.ChartKind:
		g.installed[owner.Name] = true
		if chart := g.charts[owner.Name]; chart != nil && r.Namespace == chart.Namespace {
			g.add(plan.ChartKind, chart.Name, plan.StageOf(chart, r, g.to), lockstep.Problem(r, g.to, !g.Planned))
		}
		return nil
	case owner != nil && owner.Kind == packageKind:
		return g.addPackage(ctx, r, owner.Name)
	}
	g.add(releaseKind, r.Name, lockstep.StageOf(r.Annotations[addonsv1.UpgradeStageAnnotation], r, g.to), lockstep.Problem(r, g.to, false))
	return nil
}

// addMissing adds HelmChartProxies that have no release on the cluster yet. One without a declared
// stage is no prerequisite: the cluster has been working without it.
func (g *gathering) addMissing() {
	for name, chart := range g.charts {
		if stage, ok := lockstep.ParseStage(chart.Annotations[addonsv1.UpgradeStageAnnotation]); ok && !g.installed[name] {
			g.add(plan.ChartKind, name, stage, "not installed yet")
		}
	}
}

// addPackage adds a Package. Its version comes from the active bundle of the cluster.
func (g *gathering) addPackage(ctx context.Context, r *addonsv1.HelmReleaseProxy, name string) error {
	p := &packagesv1.Package{}
	if err := g.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: name}, p); err != nil {
		return client.IgnoreNotFound(err)
	}
	stage := lockstep.StageOf(p.Annotations[addonsv1.UpgradeStageAnnotation], r, g.to)
	problem := lockstep.Problem(r, g.to, false)
	if problem == "" && g.Behind != nil && (stage == addonsv1.BeforeWorkers || stage == addonsv1.AfterWorkers) {
		var err error
		if problem, err = g.Behind(ctx, g.cluster.Name, Package{p, r}, g.to); err != nil {
			return err
		}
	}
	g.add(packageKind, name, stage, problem)
	return nil
}

func (g *gathering) add(kind, name string, stage addonsv1.UpgradeStage, problem string) {
	if stage != addonsv1.NoStage {
		g.found = append(g.found, lockstep.AddOn{Kind: kind, Name: name, Stage: stage, Problem: problem})
	}
}
