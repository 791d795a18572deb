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

// scope is the state of one reconcile.
type scope struct {
	cluster *anywherev1.Cluster
	before  *anywherev1.Cluster
	// stale means that the cache does not contain the last write yet.
	stale bool

	live   live
	config *spec.Config
	input  build.Input
	wanted *build.Set
	// failure is an error that the user must correct.
	failure *failure
	// waiting says what a deletion waits for.
	waiting string
	// gone means that the finalizer was removed.
	gone  bool
	after time.Duration
}

// failure says why a Cluster can't be reconciled.
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

// open returns nil for a Cluster that is deleted or paused.
func (c *Controller) open(ctx context.Context, key client.ObjectKey) (*scope, error) {
	cluster := &anywherev1.Cluster{}
	if err := c.Client.Get(ctx, key, cluster); err != nil {
		if client.IgnoreNotFound(err) == nil {
			c.forget(key)
		}
		return nil, client.IgnoreNotFound(err)
	}
	if paused(cluster) {
		return nil, nil
	}
	return &scope{cluster: cluster, before: cluster.DeepCopy(), stale: c.writes.Stale(cluster)}, nil
}

// paused reports whether to skip a Cluster. A paused Cluster is deleted only if an annotation allows it.
func paused(c *anywherev1.Cluster) bool {
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

// take adds the finalizer before any object is created.
func (c *Controller) take(ctx context.Context, s *scope) (bool, error) {
	if !controllerutil.AddFinalizer(s.cluster, anywherev1.ClusterFinalizer) {
		return true, nil
	}
	return true, c.patch(ctx, s)
}

// record writes audit records of changes.
func (c *Controller) record(ctx context.Context, s *scope) (bool, error) {
	return true, c.Records.Record(ctx, s.cluster)
}

// patch writes the metadata.
func (c *Controller) patch(ctx context.Context, s *scope) error {
	err := c.Client.Patch(ctx, s.cluster, client.MergeFromWithOptions(s.before, client.MergeFromWithOptimisticLock{}))
	if err != nil {
		return fmt.Errorf("updating Cluster %q: %w", s.key(), err)
	}
	c.writes.Note(s.cluster)
	s.before = s.cluster.DeepCopy()
	return nil
}

// close writes the status if it has changed, and reports the changes.
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
		return fmt.Errorf("updating the status of Cluster %q: %w", s.key(), err)
	}
	if err == nil {
		c.writes.Note(s.cluster)
		c.eventStatus(s)
		c.Figures.Report(ctx, s.cluster, c.journal.Ended(s.before, s.cluster)...)
	}
	return nil
}
