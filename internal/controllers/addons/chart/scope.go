package chart

import (
	"fmt"
	"sync"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	"github.com/drover-dev/drover/internal/controllers/addons/rollout"
	"github.com/drover-dev/drover/internal/controllers/reconcile"
	"github.com/drover-dev/drover/internal/model/addons/desired"
	"github.com/drover-dev/drover/internal/model/addons/plan"
)

// scope is one reconcile: its object and the facts that its steps gather.
type scope struct {
	*reconcile.Visit[*addonsv1.HelmChartProxy]

	chart   *addonsv1.HelmChartProxy
	program *desired.Program
	// lastGood is the last spec that was rolled out completely; nil if there is none or it isn't
	// needed.
	lastGood *desired.Program
	// revision is a digest of what is rolled out.
	revision string
	// releases are the existing ones by cluster. They belong to the cache.
	releases map[string][]*addonsv1.HelmReleaseProxy
	targets  []*target

	facts
}

func newScope(v *reconcile.Visit[*addonsv1.HelmChartProxy]) *scope {
	return &scope{Visit: v, chart: v.Object}
}

// target is a selected cluster.
type target struct {
	cluster *clusterv1.Cluster
	// release is the existing one, or nil.
	release *addonsv1.HelmReleaseProxy
	// skip excludes the cluster from the following steps.
	skip bool
	// change leads to the current spec, and rollback to the last good one.
	change, rollback plan.Change
	// problem is why there is no change.
	problem *problem
}

// facts are what the steps have found out. The status is computed from them and nothing else.
type facts struct {
	mu sync.Mutex
	// selectionErr is why no clusters could be selected.
	selectionErr error
	clusters     []*clusterv1.Cluster
	problems     []problem
	// reinstalling are clusters whose release is deleted to be reinstalled, and waiting those whose
	// wave has not started.
	reinstalling, waiting []string
	// done are the clusters that were changed, by the reason of the event.
	done map[string][]string
	// after are the releases as this reconcile leaves them.
	after []*addonsv1.HelmReleaseProxy
	// deleting counts releases that are deleted with the HelmChartProxy.
	deleting int
	plan     rollout.Plan
}

// problem is a problem with one cluster, or with all if it names none.
type problem struct {
	cluster, reason string
	err             error
	// final reports that a retry does not help. An event follows when something changes.
	final bool
}

// addProblem records a problem. Clusters are handled in parallel.
func (f *facts) addProblem(p problem) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.problems = append(f.problems, p)
}

// addAfter records a release as this reconcile leaves it.
func (f *facts) addAfter(r *addonsv1.HelmReleaseProxy) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.after = append(f.after, r)
}

// addWaiting records a cluster that must not have the current spec yet.
func (f *facts) addWaiting(t *target) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.waiting = append(f.waiting, t.cluster.Name)
}

// addReinstalling records a cluster whose release is deleted to be reinstalled.
func (f *facts) addReinstalling(t *target) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reinstalling = append(f.reinstalling, t.cluster.Name)
}

// addDone records that a cluster was changed.
func (f *facts) addDone(reason, cluster string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.done == nil {
		f.done = map[string][]string{}
	}
	f.done[reason] = append(f.done[reason], cluster)
}

// exclude skips a cluster from here on.
func (s *scope) exclude(t *target) {
	t.skip = true
	if t.release != nil {
		s.addAfter(t.release)
	}
}

// retriable returns the first problem that a retry may solve.
func (f *facts) retriable() error {
	for _, p := range f.problems {
		if !p.final {
			return fmt.Errorf("cluster %q: %w", p.cluster, p.err)
		}
	}
	return nil
}
