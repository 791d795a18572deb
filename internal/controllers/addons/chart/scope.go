package chart

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"
	"sigs.k8s.io/cluster-api/util/annotations"
	"sigs.k8s.io/cluster-api/util/finalizers"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	"github.com/drover-dev/drover/internal/controllers/addons/rollout"
	"github.com/drover-dev/drover/internal/model/addons/desired"
	"github.com/drover-dev/drover/internal/model/addons/plan"
)

// scope is one reconcile: the objects it is about, and the facts that its steps find.
type scope struct {
	chart  *addonsv1.HelmChartProxy
	before *addonsv1.HelmChartProxy

	program *desired.Program
	// good is what was rolled out completely before; nil if it is not needed, or if there is none.
	good *desired.Program
	// revision is a digest of what is rolled out.
	revision string
	// releases are by the name of their cluster, as they were found. They belong to the cache.
	releases map[string][]*addonsv1.HelmReleaseProxy
	targets  []*target

	facts
}

// target is a cluster that the selector matches.
type target struct {
	cluster *clusterv1.Cluster
	// release is the one that is there, nil if none is.
	release *addonsv1.HelmReleaseProxy
	// skip says that nothing is to be done for it.
	skip bool
	// move is what has to be done to give it what is rolled out, and back what has to be done to give it what was good before.
	move, back plan.Change
	// problem is why there is no move.
	problem *problem
}

// facts are what the steps found out. Status is made from them and nothing else.
type facts struct {
	mu sync.Mutex
	// unselectable is why no clusters could be chosen.
	unselectable error
	clusters     []*clusterv1.Cluster
	problems     []problem
	// reinstalling and waiting are clusters whose release is removed to be made anew, and those whose turn has not come.
	reinstalling, waiting []string
	// done are the clusters for which something was done, by the reason of the event that tells of it.
	done map[string][]string
	// after are the releases as this reconcile leaves them.
	after []*addonsv1.HelmReleaseProxy
	// removing are releases that are on their way out with the HelmChartProxy.
	removing int
	plan     rollout.Plan
}

// problem is what went wrong for one cluster, or for all if it names none.
type problem struct {
	cluster, reason string
	err             error
	// final says that trying again does not help: something has to change, and that is an event.
	final bool
}

// note records a problem. Clusters are worked on side by side.
func (f *facts) note(p problem) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.problems = append(f.problems, p)
}

// leaves records a release that stays, as it is now.
func (f *facts) leaves(r *addonsv1.HelmReleaseProxy) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.after = append(f.after, r)
}

// open reads the HelmChartProxy. It returns nil if there is nothing to do.
func (c *Controller) open(ctx context.Context, key ctrlclient.ObjectKey) (*scope, error) {
	s := &scope{chart: &addonsv1.HelmChartProxy{}}
	if err := c.Client.Get(ctx, key, s.chart); err != nil {
		if apierrors.IsNotFound(err) {
			c.forget(key)
			return nil, nil
		}
		return nil, fmt.Errorf("reading HelmChartProxy %q: %w", key, err)
	}
	if _, moved := s.chart.Annotations[clusterctlv1.DeleteForMoveAnnotation]; moved {
		return nil, nil // it is on another management cluster now, and only goes from here
	}
	if annotations.HasPaused(s.chart) || (c.WatchFilter != "" && s.chart.Labels[clusterv1.WatchLabel] != c.WatchFilter) {
		return nil, nil // events of clusters and releases lead here as well
	}
	if c.writes.Stale(s.chart) {
		return nil, errStale
	}
	added, err := finalizers.EnsureFinalizer(ctx, c.Client, s.chart, addonsv1.HelmChartProxyFinalizer)
	if err != nil {
		return nil, err
	}
	if added {
		c.writes.Note(s.chart)
	}
	s.before = s.chart.DeepCopy()
	return s, nil
}

// errStale says that the cache is behind what this controller has written.
var errStale = errors.New("the cache is behind")

func (c *Controller) forget(key ctrlclient.ObjectKey) {
	c.writes.Forget(key)
	c.programs.forget(key)
	c.settled.forget(key)
}

func (s *scope) deleting() bool { return !s.chart.DeletionTimestamp.IsZero() }

func (s *scope) key() ctrlclient.ObjectKey { return ctrlclient.ObjectKeyFromObject(s.chart) }

// close turns the facts into status, writes it, and says whether a retry is needed.
func (c *Controller) close(ctx context.Context, s *scope, err error) (ctrl.Result, error) {
	c.tellMoves(s)
	if err != nil && s.unselectable == nil {
		return ctrl.Result{}, err // not enough is known to say anything
	}
	s.report()
	if writeErr := c.write(ctx, s); apierrors.IsConflict(writeErr) {
		return ctrl.Result{RequeueAfter: afterConflict}, err // the cache is behind
	} else if writeErr != nil {
		err = errors.Join(err, writeErr)
	}
	c.tellRollout(s)
	if err == nil {
		err = s.retry()
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: s.plan.Next}, nil
}

// afterConflict is how long the cache may take to catch up.
const afterConflict = 200 * time.Millisecond

// write puts the status into one patch, if it has changed. The spec is the user's and is never written.
func (c *Controller) write(ctx context.Context, s *scope) error {
	if equality.Semantic.DeepEqual(s.before.Status, s.chart.Status) {
		return nil
	}
	patch := ctrlclient.MergeFromWithOptions(s.before, ctrlclient.MergeFromWithOptimisticLock{})
	written := s.chart.DeepCopy()
	err := c.Client.Status().Patch(ctx, written, patch)
	if err == nil {
		c.writes.Note(written)
	}
	if s.deleting() {
		err = ctrlclient.IgnoreNotFound(err) // it went with its finalizer
	}
	if err != nil && !apierrors.IsConflict(err) {
		return fmt.Errorf("writing the status of HelmChartProxy %q: %w", s.key(), err)
	}
	return err
}

// retry is the first problem that trying again may solve.
func (s *scope) retry() error {
	for _, p := range s.problems {
		if !p.final {
			return fmt.Errorf("cluster %q: %w", p.cluster, p.err)
		}
	}
	return nil
}
