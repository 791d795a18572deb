package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/controllers/clusters/build"
	"github.com/drover-dev/drover/internal/controllers/clusters/encryption"
	"github.com/drover-dev/drover/internal/controllers/reconcile"
	"github.com/drover-dev/drover/internal/model/lockstep"
	"github.com/drover-dev/drover/internal/model/spec"
)

// scope is the state of one reconcile.
type scope struct {
	visit *reconcile.Visit[*anywherev1.Cluster]
	// cluster is the object of the visit.
	cluster *anywherev1.Cluster

	live   live
	config *spec.Config
	input  build.Input
	wanted *build.Set
	// upgrade is the progress of a Kubernetes upgrade, and version that of the control plane until it
	// may go on. Both are empty until the step that keeps add-ons in step.
	upgrade *lockstep.Decision
	version string
	// packages is nil until the step that enables packages.
	packages *packagesState
	// encryption is how API servers encrypt Secrets; nil without a key of the cluster.
	encryption *encryption.State
	// encryptionProblem is why Secrets can't be encrypted with a new key, or "".
	encryptionProblem string
	// postponed is when requests for new certificates take effect; 0 means that none waits.
	postponed time.Duration
	// released means that the finalizer was removed, so that no status is written.
	released bool
}

func (s *scope) key() client.ObjectKey { return s.visit.Key() }

// opening skips paused Clusters, except that it records their changes, and adds the finalizer
// before any object is created.
func (c *Controller) opening() reconcile.Opening[*anywherev1.Cluster] {
	return reconcile.Opening[*anywherev1.Cluster]{
		Client:    c.Client,
		Skip:      c.skip,
		Finalizer: anywherev1.ClusterFinalizer,
		Forget:    c.forget,
	}
}

// skip skips a paused Cluster. Its changes are recorded all the same: until it is resumed, there
// may be more of them than the Cluster can hold.
func (c *Controller) skip(ctx context.Context, cluster *anywherev1.Cluster) (bool, error) {
	if !paused(cluster) {
		return false, nil
	}
	visit := reconcile.NewVisit(c.Client, cluster)
	if err := c.Records.Record(ctx, cluster); err != nil {
		return true, err
	}
	return true, visit.Save(ctx)
}

// paused reports whether to skip a Cluster. A paused Cluster is deleted only if an annotation
// allows it.
func paused(c *anywherev1.Cluster) bool {
	if !c.IsPaused() {
		return false
	}
	return c.DeletionTimestamp.IsZero() || c.Annotations[anywherev1.AllowDeleteWhenPausedAnnotation] != "true"
}

func (c *Controller) forget(key client.ObjectKey) {
	c.access.forget(key)
	c.journal.Forget(key)
}

// record writes audit records of changes.
func (c *Controller) record(ctx context.Context, s *scope) error {
	return c.Records.Record(ctx, s.cluster)
}

// close writes the status if it has changed, and reports the changes.
func (c *Controller) close(ctx context.Context, s *scope, outcome error) (ctrl.Result, error) {
	if s.released {
		return reconcile.Result(outcome, 0)
	}
	s.cluster.Status = status(s.facts(outcome, c.Clock.Now()))
	before := s.visit.Before()
	result, err := s.visit.Close(ctx, outcome, s.next())
	if s.visit.Before() != before { // It was written.
		c.eventStatus(before, s.cluster)
		c.Figures.Report(ctx, s.cluster, c.journal.Ended(before, s.cluster)...)
	}
	return result, err
}

// next returns when to reconcile again if nothing happens: when an upgrade has waited for too long,
// or when a request for new certificates takes effect. 0 means never.
func (s *scope) next() time.Duration {
	if s.upgrade == nil {
		return s.postponed
	}
	return earlier(s.postponed, s.upgrade.Next)
}

// earlier returns the shorter one of two durations. 0 means never.
func earlier(a, b time.Duration) time.Duration {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

// fail returns an error that the user must correct.
func fail(reason anywherev1.FailureReason, format string, args ...any) error {
	return &reconcile.Terminal{Reason: string(reason), Message: fmt.Sprintf(format, args...)}
}

// waitFor returns the outcome of a deletion that waits for an event.
func waitFor(format string, args ...any) *reconcile.Wait {
	return &reconcile.Wait{Reason: anywherev1.DeletingReason, Message: fmt.Sprintf(format, args...)}
}

// rejectedError means that the API server rejected an object. The user must correct the spec, but
// the reconcile is retried, because the rule that rejected the object may change.
type rejectedError struct{ error }

func (e *rejectedError) Unwrap() error { return e.error }

// failure says why a Cluster can't be reconciled.
type failure struct {
	reason  anywherev1.FailureReason
	message string
}

// failureOf returns the failure that the outcome of the steps means for the user, or nil.
func failureOf(outcome error) *failure {
	var rejected *rejectedError
	switch terminal := reconcile.AsTerminal(outcome); {
	case terminal != nil:
		return &failure{anywherev1.FailureReason(terminal.Reason), terminal.Message}
	case errors.As(outcome, &rejected):
		return &failure{anywherev1.ClusterInvalidReason, rejected.Error()}
	default:
		return nil
	}
}
