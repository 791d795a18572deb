package plan

import (
	"cmp"
	"context"
	"slices"

	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	"github.com/drover-dev/drover/internal/model/addons/desired"
	"github.com/drover-dev/drover/internal/model/addons/index"
)

// Prediction is what would happen on one cluster.
type Prediction struct {
	Cluster string
	Action  Action
	// Before is the existing release and After the one that would replace it. Either may be nil.
	Before, After *addonsv1.HelmReleaseProxy
	// Err is why the outcome isn't known, or why nothing would happen.
	Err error
}

// Action is what would happen to a release.
type Action string

// Actions of a Prediction.
const (
	Unchanged Action = "Keep"
	Install   Action = "Install"
	Upgrade   Action = "Upgrade"
	Reinstall Action = "Reinstall"
	Uninstall Action = "Uninstall"
)

// Predict returns what the controller would do if it reconciled chart as given, sorted by cluster.
// Like the controller, it leaves out clusters that are paused or being deleted.
func Predict(ctx context.Context, reader ctrlclient.Reader, chart *addonsv1.HelmChartProxy) ([]Prediction, error) {
	program, problems := desired.Compile(&chart.Spec)
	if len(problems) > 0 {
		return nil, problems.ToAggregate()
	}
	releases, err := Releases(ctx, index.Releases{Reader: reader}, ctrlclient.ObjectKeyFromObject(chart))
	if err != nil {
		return nil, err
	}
	clusters, err := Clusters(ctx, reader, chart)
	if err != nil {
		return nil, err
	}
	p := predictor{reader: reader, chart: chart, program: program}
	var out []Prediction
	for _, cluster := range clusters {
		out = append(out, p.cluster(ctx, cluster, releases[cluster.Name])...)
		delete(releases, cluster.Name)
	}
	orphans, err := p.orphans(ctx, releases)
	out = append(out, orphans...)
	slices.SortFunc(out, func(a, b Prediction) int { return cmp.Compare(a.Cluster, b.Cluster) })
	return out, err
}

// predictor is one call of Predict.
type predictor struct {
	reader  ctrlclient.Reader
	chart   *addonsv1.HelmChartProxy
	program *desired.Program
}

// cluster predicts a selected cluster. It returns nothing for an excluded one.
func (p predictor) cluster(ctx context.Context, cluster *clusterv1.Cluster, existing []*addonsv1.HelmReleaseProxy) []Prediction {
	if err := Duplicates(existing); err != nil {
		return []Prediction{{Cluster: cluster.Name, Err: err}}
	}
	if Excluded(cluster) {
		return nil
	}
	out := Prediction{Cluster: cluster.Name, Action: Unchanged}
	if len(existing) == 1 {
		out.Before, out.After = existing[0], existing[0]
	}
	want, err := p.want(ctx, cluster, out.Before)
	if err != nil {
		out.Err = err
		return []Prediction{out}
	}
	switch c := Decide(p.chart, out.Before, want); c.Verb {
	case Create:
		out.Action, out.After = Install, c.Object
	case Update:
		out.Action, out.After = Upgrade, c.Object
	case Recreate, Await:
		out.Action, out.After = Reinstall, Decide(p.chart, nil, want).Object
	case Reject:
		out.Err = c.Err
	}
	return []Prediction{out}
}

func (p predictor) want(ctx context.Context, cluster *clusterv1.Cluster, existing *addonsv1.HelmReleaseProxy) (desired.Release, error) {
	facts, err := desired.Read(ctx, p.reader, cluster, p.program.Uses())
	if err != nil {
		return desired.Release{}, err
	}
	facts.Release = existing // keeps its random values
	return Want(p.chart, p.program, facts)
}

// orphans predicts the releases on clusters that aren't selected.
func (p predictor) orphans(ctx context.Context, releases map[string][]*addonsv1.HelmReleaseProxy) ([]Prediction, error) {
	var out []Prediction
	for cluster, all := range releases {
		for _, r := range all {
			retained, err := Retained(ctx, p.reader, p.chart, r)
			if err != nil {
				return nil, err
			}
			if !retained {
				out = append(out, Prediction{Cluster: cluster, Action: Uninstall, Before: r})
			}
		}
	}
	return out, nil
}
