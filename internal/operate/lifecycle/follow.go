package lifecycle

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/model/spec"
	"github.com/drover-dev/drover/internal/operate/inspect"
	"github.com/drover-dev/drover/internal/operate/lifecycle/phase"
)

const (
	// failureGrace is how long a failure must last before it counts: objects that are applied one
	// after the other contradict each other for a moment.
	failureGrace = 10 * time.Second
	// resync is when the cluster is read again although no change was observed.
	resync = 5 * time.Second
	// minWorkerTimeout is the least timeout of all workers together.
	minWorkerTimeout = 30 * time.Minute
)

// What a follower reports, in front of what it waits for.
const (
	creating   = "Creating"
	upgrading  = "Upgrading"
	deleting   = "Deleting"
	replacing  = "Replacing"
	waitingFor = "Waiting for"
)

// follower waits for what the controllers make of a cluster.
type follower struct {
	plane    *inspect.Plane
	key      client.ObjectKey
	progress *phase.Progress
	// doing is one of the words above.
	doing string

	outage outage
	// failing is since when the controllers report a failure.
	failing time.Time
	// deepest is the last known cause of waiting, and next what to do about it.
	deepest inspect.Link
	next    string
}

// FailedError means that the controllers can't continue until the user corrects something.
type FailedError struct{ Cluster, Problem string }

func (e *FailedError) Error() string {
	return fmt.Sprintf("reconciling cluster %q failed: %s\nCorrect the spec and run the command again", e.Cluster, e.Problem)
}

// TimeoutError means that something took longer than its timeout.
type TimeoutError struct {
	Cluster string
	Limit   time.Duration
	Waiting string
	Next    string
}

func (e *TimeoutError) Error() string {
	return fmt.Sprintf("timed out after %s waiting for cluster %q: %s\nTry: %s", e.Limit, e.Cluster, e.Waiting, e.Next)
}

// untilReady waits until the cluster has reached its newest spec.
func (f *follower) untilReady(ctx context.Context, limits Limits) error {
	cluster := &anywherev1.Cluster{}
	if err := f.plane.Client.Get(ctx, f.key, cluster); err != nil {
		return fmt.Errorf("reading cluster %q: %w", f.key.Name, err)
	}
	if cluster.Spec.ExternalEtcdConfiguration != nil {
		if err := f.until(ctx, limits.Etcd, etcdReady); err != nil {
			return err
		}
	}
	if err := f.until(ctx, limits.ControlPlane, func(c *anywherev1.Cluster) bool {
		return observed(c) && apimeta.IsStatusConditionTrue(c.Status.Conditions, anywherev1.ControlPlaneInitialized)
	}); err != nil {
		return err
	}
	return f.until(ctx, workerTimeout(cluster, limits), func(c *anywherev1.Cluster) bool { return f.reached(ctx, c) })
}

// etcdReady reports whether external etcd has reached the newest spec.
func etcdReady(c *anywherev1.Cluster) bool {
	return observed(c) && apimeta.IsStatusConditionTrue(c.Status.Conditions, anywherev1.EtcdReady)
}

// workerTimeout returns the timeout of the whole cluster once its control plane is initialized.
func workerTimeout(c *anywherev1.Cluster, limits Limits) time.Duration {
	if limits.ControlPlane <= 0 {
		return 0
	}
	_, workers := machines(c)
	return limits.ControlPlane + max(minWorkerTimeout, time.Duration(workers)*limits.Machine)
}

// observed reports whether the controllers have observed the newest spec.
func observed(c *anywherev1.Cluster) bool { return c.Status.ObservedGeneration >= c.Generation }

// reached reports whether the cluster has reached the newest spec of itself and of every object
// that it references.
func (f *follower) reached(ctx context.Context, c *anywherev1.Cluster) bool {
	if !observed(c) || c.Status.ReconciledGeneration < c.Generation || !apimeta.IsStatusConditionTrue(c.Status.Conditions, anywherev1.Ready) {
		return false
	}
	config, err := spec.Gather(ctx, f.plane.Client, c)
	return err == nil && c.Status.ChildrenReconciledGeneration == childGenerations(config)
}

// childGenerations returns the sum of the generations of the objects that a Cluster references.
func childGenerations(c *spec.Config) int64 {
	var sum int64
	for _, o := range c.Objects() {
		if o != client.Object(c.Cluster) {
			sum += o.GetGeneration()
		}
	}
	return sum
}

// until waits until done is true of the cluster. A limit of 0 is none.
func (f *follower) until(ctx context.Context, limit time.Duration, done func(*anywherev1.Cluster) bool) error {
	return f.loop(ctx, limit, func(c *anywherev1.Cluster, err error) (bool, error) {
		switch {
		case apierrors.IsNotFound(err):
			return false, fmt.Errorf("cluster %q was deleted by someone else", f.key.Name)
		case err != nil:
			return false, err
		case done(c):
			return true, nil
		}
		return false, f.failed(c)
	})
}

// untilGone waits until the cluster with that UID no longer exists.
func (f *follower) untilGone(ctx context.Context, limit time.Duration, uid string) error {
	return f.loop(ctx, limit, func(c *anywherev1.Cluster, err error) (bool, error) {
		if apierrors.IsNotFound(err) || err == nil && string(c.UID) != uid {
			return true, nil
		}
		return false, err
	})
}

// loop reads the cluster now and after each change, until check ends it.
func (f *follower) loop(ctx context.Context, limit time.Duration, check func(*anywherev1.Cluster, error) (bool, error)) error {
	limited, cancel := context.WithCancel(ctx)
	if limit > 0 {
		limited, cancel = context.WithTimeout(ctx, limit)
	}
	defer cancel()
	for changes := f.plane.Changes(limited, f.key); ; {
		cluster := &anywherev1.Cluster{}
		err := f.plane.Client.Get(limited, f.key, cluster)
		if ctx.Err() == nil && limited.Err() != nil {
			return f.timedOut(limit)
		}
		if ctx.Err() == nil && f.outage.observe(err, time.Now()) {
			f.progress.Waiting("Waiting for the management plane at %s to answer", f.plane.Host)
		} else {
			ended, err := check(cluster, err)
			if ended || err != nil {
				return err
			}
			f.report(limited, cluster)
		}
		select {
		case <-limited.Done():
			if ctx.Err() != nil {
				return ctx.Err()
			}
		case <-changes:
		case <-time.After(resync):
		}
	}
}

// timedOut returns the error of a timeout, with the last known cause.
func (f *follower) timedOut(limit time.Duration) error {
	e := &TimeoutError{Cluster: f.key.Name, Limit: limit, Waiting: "the cause is unknown", Next: "drover why cluster " + f.key.Name}
	if f.deepest.Message != "" || f.deepest.Condition != "" {
		e.Waiting, e.Next = f.deepest.String(), f.next
	}
	return e
}

// failed returns an error once the controllers have reported a failure for long enough.
func (f *follower) failed(c *anywherev1.Cluster) error {
	if c.Status.FailureMessage == nil || *c.Status.FailureMessage == "" || !observed(c) {
		f.failing = time.Time{}
		return nil
	}
	if f.failing.IsZero() {
		f.failing = time.Now()
	}
	if time.Since(f.failing) < failureGrace {
		return nil
	}
	return &FailedError{Cluster: c.Name, Problem: *c.Status.FailureMessage}
}

// report reports the current activity and what it is waiting for.
func (f *follower) report(ctx context.Context, c *anywherev1.Cluster) {
	tree, err := f.plane.Tree(ctx, c)
	if err != nil {
		return // The next change is another chance.
	}
	answer := inspect.Why(tree, time.Now())
	if answer.Ready {
		return
	}
	f.deepest, f.next = answer.Deepest(), answer.Next
	f.progress.Waiting("%s: %s", activity(f.doing, c), f.deepest)
}

// activity names what is being worked on: external etcd before the control plane, and that before
// the workers.
func activity(doing string, c *anywherev1.Cluster) string {
	if doing == deleting {
		return doing + " cluster " + c.Name
	}
	if c.Spec.ExternalEtcdConfiguration != nil && !etcdReady(c) {
		return doing + " etcd"
	}
	controlPlane, workers := machines(c)
	if n := nextMachine(c.Status.ControlPlane, controlPlane); n <= controlPlane {
		return fmt.Sprintf("%s control plane machine %d/%d", doing, n, controlPlane)
	}
	if n := nextMachine(c.Status.Workers, workers); n <= workers {
		return fmt.Sprintf("%s worker machine %d/%d", doing, n, workers)
	}
	return doing + " cluster " + c.Name
}

// nextMachine returns the number of the first machine that is not ready. Ready is a status such as
// "2/3", or empty while nothing is known.
func nextMachine(ready string, wanted int) int {
	var n, of int
	if _, err := fmt.Sscanf(ready, "%d/%d", &n, &of); err != nil {
		return min(1, wanted+1)
	}
	return n + 1
}
