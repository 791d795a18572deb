package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/model/spec"
	"github.com/drover-dev/drover/internal/operate/inspect"
	"github.com/drover-dev/drover/internal/operate/lifecycle/workflow"
)

const (
	// failureGrace is how long a failure must stand before it counts: objects that are applied one after the other contradict each other for
	// a moment.
	failureGrace = 10 * time.Second
	// lookAgain is when to look although nothing was heard.
	lookAgain = 5 * time.Second
	// leastForWorkers is how long workers may take at least.
	leastForWorkers = 30 * time.Minute
)

// follower watches what the controllers make of a cluster.
type follower struct {
	plane    *inspect.Plane
	key      client.ObjectKey
	progress *workflow.Progress

	// failing is since when the controllers say that the user has to do something.
	failing time.Time
	// deepest is what was last known to be waited for.
	deepest inspect.Link
	next    string
}

// FailedError means that the controllers can't go on before the user has done something.
type FailedError struct{ Cluster, Problem string }

func (e *FailedError) Error() string {
	return fmt.Sprintf("cluster %q can't be worked on: %s. Correct that in the spec and run the command again", e.Cluster, e.Problem)
}

// SlowError means that something took longer than it may.
type SlowError struct {
	Cluster string
	Limit   time.Duration
	Waiting string
	Next    string
}

func (e *SlowError) Error() string {
	return fmt.Sprintf("cluster %q is not there after %s. It waits: %s. What to do: %s", e.Cluster, e.Limit, e.Waiting, e.Next)
}

// untilReady waits until the cluster is as its newest spec wants it.
func (f *follower) untilReady(ctx context.Context, limits Limits) error {
	cluster := &anywherev1.Cluster{}
	if err := f.plane.Client.Get(ctx, f.key, cluster); err != nil {
		return fmt.Errorf("reading cluster %q: %w", f.key.Name, err)
	}
	if err := f.until(ctx, limits.ControlPlane, func(c *anywherev1.Cluster) bool {
		return seen(c) && apimeta.IsStatusConditionTrue(c.Status.Conditions, anywherev1.ControlPlaneInitialized)
	}); err != nil {
		return err
	}
	_, workers := machines(cluster)
	limit := limits.ControlPlane
	if limit > 0 {
		limit += max(leastForWorkers, time.Duration(workers)*limits.Machine)
	}
	return f.until(ctx, limit, func(c *anywherev1.Cluster) bool { return f.reached(ctx, c) })
}

// seen says that the controllers have looked at the newest spec.
func seen(c *anywherev1.Cluster) bool { return c.Status.ObservedGeneration >= c.Generation }

// reached says that the cluster is as the newest spec of it and of all that it names wants it.
func (f *follower) reached(ctx context.Context, c *anywherev1.Cluster) bool {
	if !seen(c) || c.Status.ReconciledGeneration < c.Generation || !apimeta.IsStatusConditionTrue(c.Status.Conditions, anywherev1.Ready) {
		return false
	}
	config, err := spec.Gather(ctx, f.plane.Client, c)
	return err == nil && c.Status.ChildrenReconciledGeneration == childGenerations(config)
}

// childGenerations is the sum of the generations of the objects that a Cluster names.
func childGenerations(c *spec.Config) int64 {
	var sum int64
	for _, o := range c.Objects() {
		if o != client.Object(c.Cluster) {
			sum += o.GetGeneration()
		}
	}
	return sum
}

// until looks at the cluster after each change until it is as it should be. No limit is none.
func (f *follower) until(ctx context.Context, limit time.Duration, done func(*anywherev1.Cluster) bool) error {
	return f.loop(ctx, limit, func(c *anywherev1.Cluster, err error) (bool, error) {
		switch {
		case apierrors.IsNotFound(err):
			return false, fmt.Errorf("cluster %q has gone: somebody deleted it", f.key.Name)
		case err != nil:
			return false, err
		case done(c):
			return true, nil
		}
		return false, f.failed(c)
	})
}

// untilGone waits until nothing is left of the cluster with that UID.
func (f *follower) untilGone(ctx context.Context, limit time.Duration, uid string) error {
	return f.loop(ctx, limit, func(c *anywherev1.Cluster, err error) (bool, error) {
		if apierrors.IsNotFound(err) || err == nil && string(c.UID) != uid {
			return true, nil
		}
		return false, err
	})
}

// loop calls look with the cluster as it is, at first and after each change.
func (f *follower) loop(ctx context.Context, limit time.Duration, look func(*anywherev1.Cluster, error) (bool, error)) error {
	limited, cancel := context.WithCancel(ctx)
	if limit > 0 {
		limited, cancel = context.WithTimeout(ctx, limit)
	}
	defer cancel()
	for changes := f.plane.Changes(limited, f.key); ; {
		cluster := &anywherev1.Cluster{}
		err := f.plane.Client.Get(limited, f.key, cluster)
		if ctx.Err() == nil && limited.Err() != nil {
			return f.tooSlow(limit)
		}
		var status apierrors.APIStatus
		if err != nil && ctx.Err() == nil && !errors.As(err, &status) {
			f.progress.Waiting("the management plane at %s does not answer, trying again", f.plane.Host)
		} else {
			ended, err := look(cluster, err)
			if ended || err != nil {
				return err
			}
			f.tell(limited, cluster)
		}
		select {
		case <-limited.Done():
			if ctx.Err() != nil {
				return ctx.Err()
			}
		case <-changes:
		case <-time.After(lookAgain):
		}
	}
}

// tooSlow says what was waited for in vain, if that was ever known.
func (f *follower) tooSlow(limit time.Duration) error {
	if f.deepest.Message == "" && f.deepest.Condition == "" {
		return &SlowError{Cluster: f.key.Name, Limit: limit, Waiting: "it is not known for what", Next: "see `drover why cluster " + f.key.Name + "`"}
	}
	return &SlowError{Cluster: f.key.Name, Limit: limit, Waiting: f.deepest.String(), Next: f.next}
}

// failed is an error once the controllers have said for long enough that they can't go on.
func (f *follower) failed(c *anywherev1.Cluster) error {
	if c.Status.FailureMessage == nil || *c.Status.FailureMessage == "" || !seen(c) {
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

// tell says what everything waits for, on which machine.
func (f *follower) tell(ctx context.Context, c *anywherev1.Cluster) {
	tree, err := f.plane.Tree(ctx, c)
	if err != nil {
		return // The next change is another occasion.
	}
	answer := inspect.Why(tree, time.Now())
	if answer.Ready {
		return
	}
	f.deepest, f.next = answer.Deepest(), answer.Next
	f.progress.Waiting("%s", f.deepest)
}
