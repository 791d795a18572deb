package cluster

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/controllers/clusters/build"
	"github.com/drover-dev/drover/internal/model/spec"
)

// scope is what is known of one Cluster during one reconcile.
type scope struct {
	cluster *anywherev1.Cluster
	before  *anywherev1.Cluster
	// stale says that the cache does not know yet what was written last.
	stale bool

	live   live
	config *spec.Config
	input  build.Input
	wanted *build.Set
	// failure is what the user has to do something about.
	failure *failure
	// waiting is what a deletion waits for.
	waiting string
	// gone says that the Cluster was let go of.
	gone  bool
	after time.Duration
}

// failure says why a Cluster can't be worked on.
type failure struct {
	reason  anywherev1.FailureReason
	message string
}

func (s *scope) fail(reason anywherev1.FailureReason, format string, args ...any) (bool, error) {
	s.failure = &failure{reason, fmt.Sprintf(format, args...)}
	return false, nil
}

func (s *scope) deleting() bool { return !s.cluster.DeletionTimestamp.IsZero() }

func (s *scope) key() client.ObjectKey { return client.ObjectKeyFromObject(s.cluster) }

// open returns nil for a Cluster that is gone, or that is to be left alone.
func (c *Controller) open(ctx context.Context, key client.ObjectKey) (*scope, error) {
	cluster := &anywherev1.Cluster{}
	if err := c.Client.Get(ctx, key, cluster); err != nil {
		if client.IgnoreNotFound(err) == nil {
			c.forget(key)
		}
		return nil, client.IgnoreNotFound(err)
	}
	if leftAlone(cluster) {
		return nil, nil
	}
	return &scope{cluster: cluster, before: cluster.DeepCopy(), stale: c.writes.Stale(cluster)}, nil
}

// leftAlone says that somebody asked for that. A Cluster that is paused is deleted only if that is asked for too.
func leftAlone(c *anywherev1.Cluster) bool {
	if !c.IsPaused() {
		return false
	}
	return c.DeletionTimestamp.IsZero() || c.Annotations[anywherev1.AllowDeleteWhenPausedAnnotation] != "true"
}

func (c *Controller) forget(key client.ObjectKey) {
	c.writes.Forget(key)
	c.access.forget(key)
	c.journal.Forget(key)
}

// take puts the finalizer on, before anything is made.
func (c *Controller) take(ctx context.Context, s *scope) (bool, error) {
	if !controllerutil.AddFinalizer(s.cluster, anywherev1.ClusterFinalizer) {
		return true, nil
	}
	return true, c.patch(ctx, s)
}

// record puts on record who asked for what.
func (c *Controller) record(ctx context.Context, s *scope) (bool, error) {
	return true, c.Records.Record(ctx, s.cluster)
}

// patch writes metadata. What was written is what comes next.
func (c *Controller) patch(ctx context.Context, s *scope) error {
	err := c.Client.Patch(ctx, s.cluster, client.MergeFromWithOptions(s.before, client.MergeFromWithOptimisticLock{}))
	if err != nil {
		return fmt.Errorf("changing Cluster %q: %w", s.key(), err)
	}
	c.writes.Note(s.cluster)
	s.before = s.cluster.DeepCopy()
	return nil
}

// close writes the status, if it is another, and tells what has changed.
func (c *Controller) close(ctx context.Context, s *scope) error {
	if s.gone {
		return nil
	}
	audited := s.cluster.Status.AuditedGeneration
	s.cluster.Status = status(s.facts(c.Clock.Now()))
	s.cluster.Status.AuditedGeneration = audited
	if equality.Semantic.DeepEqual(s.before.Status, s.cluster.Status) {
		return nil
	}
	err := c.Client.Status().Patch(ctx, s.cluster, client.MergeFromWithOptions(s.before, client.MergeFromWithOptimisticLock{}))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("changing the status of Cluster %q: %w", s.key(), err)
	}
	if err == nil {
		c.writes.Note(s.cluster)
		c.tell(s)
		c.Figures.Report(ctx, s.cluster, c.journal.Ended(s.before, s.cluster)...)
	}
	return nil
}
