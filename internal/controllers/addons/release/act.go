package release

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"sigs.k8s.io/cluster-api/util/conditions"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	"github.com/drover-dev/drover/internal/controllers/operation"
	"github.com/drover-dev/drover/internal/workload"
	"github.com/drover-dev/drover/internal/workload/tool"
)

// act starts what was chosen.
func (v *visit) act(ctx context.Context, f facts, c choice) error {
	switch c.do {
	case nothing, finish:
		return nil
	case abort:
		v.operations.Cancel(v.key())
		return nil
	case abandon:
		v.Events.Eventf(v.release, corev1.EventTypeWarning, "ReleaseAbandoned",
			"Gave up uninstalling release %q in namespace %q: cluster %q was unreachable for %s", f.want.ID.Name, f.want.ID.Namespace, v.cluster(), f.giveUp())
		return v.finish(ctx)
	}
	connection, err := v.Clusters.Get(ctx, v.cluster())
	if err != nil {
		return fmt.Errorf("connecting to cluster %q: %w", v.cluster(), err)
	}
	want, err := f.complete()
	if err != nil {
		return err
	}
	j := job{
		key: v.key(), do: c.do, cluster: connection, tool: v.tool, want: want, state: f.state, clock: v.Clock, memory: &v.memory,
	}
	v.operations.Start(operation.Work{
		For: v.key(), Cluster: v.cluster(), Subject: f.subject(), Do: func(ctx context.Context) (any, error) { return j.run(ctx) },
	})
	return nil
}

// job is something that is done to a cluster beside the workers. It shares nothing with the reconcile that began it.
type job struct {
	key     client.ObjectKey
	do      action
	cluster *workload.Cluster
	tool    tool.Tool
	want    tool.Want
	state   tool.State
	clock   clock.PassiveClock
	memory  *memory
}

// result is what a job found out.
type result struct {
	do      action
	through *workload.Cluster
	want    tool.Want
	state   tool.State
	health  tool.Health
	changes []tool.Change
	// began is when, so that what changed meanwhile is looked at again.
	began time.Time
}

func (j job) run(ctx context.Context) (result, error) {
	r := result{do: j.do, through: j.cluster, want: j.want, state: j.state, began: j.clock.Now()}
	r.want.Correct = j.do == compare || j.do == correct
	j.memory.update(j.key, func(k *knowledge) {
		k.stirred = k.stirred && j.do != check
		k.touched = k.touched && !r.want.Correct
	})
	var err error
	switch j.do {
	case apply, correct:
		r.state, err = j.tool.Apply(ctx, j.cluster, r.want)
	case remove:
		r.state, err = tool.State{}, j.tool.Remove(ctx, j.cluster, r.want)
	case revert:
		r.state, err = j.revert(ctx)
	case check:
		r.health, err = j.tool.Health(ctx, j.cluster, r.want)
	case compare:
		r.changes, err = j.tool.Diff(ctx, j.cluster, r.want)
	}
	return r, err
}

// revert goes back to the revision before, or to nothing if there was none.
func (j job) revert(ctx context.Context) (tool.State, error) {
	back, ok := j.tool.(tool.Reverter)
	if !ok || j.state.Revision <= 1 {
		return tool.State{}, j.tool.Remove(ctx, j.cluster, j.want)
	}
	return back.Revert(ctx, j.cluster, j.want, 0)
}

// conclude takes up how the last operation ended. It says whether there was one that did.
func (v *visit) conclude() bool {
	outcome, ended := v.operations.Take(v.key())
	if !ended || errors.Is(outcome.Err, context.Canceled) {
		return false
	}
	r, _ := outcome.Value.(result)
	if outcome.Err != nil {
		v.failed(r.do, outcome.Subject, outcome.Err)
		return true
	}
	v.learn(r, outcome.Subject)
	return true
}

// learn takes up what an operation that succeeded has found out.
func (v *visit) learn(r result, subject string) {
	if r.do != check && r.do != compare {
		v.memory.left(v.key(), r.state, v.Clock.Now())
		v.forgive()
	}
	switch r.do {
	case apply:
		v.applied(r, subject)
	case correct:
		v.Events.Event(v.release, corev1.EventTypeNormal, "DriftCorrected", "Corrected objects that had drifted")
		v.note(r, func(k *knowledge) { k.drift = &[]tool.Change{} })
	case revert:
		v.reverted(r, subject)
	case check:
		v.note(r, func(k *knowledge) { k.health, k.checked = &r.health, r.began })
	case compare:
		v.note(r, func(k *knowledge) { k.drift = &r.changes })
		if len(r.changes) > 0 {
			v.Events.Eventf(v.release, corev1.EventTypeWarning, "DriftDetected", "Found drift in %s", few(objects(r.changes)))
		}
	}
}

// forgive forgets failures, but for what was taken back and must not be tried again.
func (v *visit) forgive() {
	if a := v.release.Status.Attempt; a != nil && !a.Reverted {
		v.release.Status.Attempt = nil
	}
}

// note remembers what was seen of a record through a connection.
func (v *visit) note(r result, change func(*knowledge)) {
	v.memory.update(v.key(), func(k *knowledge) {
		if k.stamp != r.state.Stamp || k.through != r.through {
			*k = knowledge{stamp: r.state.Stamp, through: r.through, stirred: k.stirred, touched: k.touched}
		}
		change(k)
	})
}

func (v *visit) applied(r result, fingerprint string) {
	before := v.release.Status.Revision
	now := metav1.NewTime(v.Clock.Now())
	v.release.Status.Applied = &addonsv1.AppliedRelease{
		Fingerprint: fingerprint, Chart: r.want.Resolved.Digest, Version: r.want.Resolved.Version, Stamp: r.state.Stamp, At: &now,
	}
	v.release.Status.Attempt = nil
	if r.state.Revision != before {
		// Another revision has not been seen ready, whatever the one before was.
		conditions.Set(v.release, condition(addonsv1.ReleaseReady, metav1.ConditionFalse, addonsv1.PendingReason, unseen))
		v.Events.Eventf(v.release, corev1.EventTypeNormal, "ReleaseApplied",
			"Deployed revision %d of release %q with version %s", r.state.Revision, r.want.ID.Name, r.want.Resolved.Version)
	}
}

func (v *visit) reverted(r result, fingerprint string) {
	v.release.Status.Attempt = &addonsv1.FailedAttempt{
		Fingerprint: fingerprint, At: metav1.NewTime(v.Clock.Now()), Failures: 1, Reverted: true,
		Message: "Objects did not become ready in time; rolled back to the previous revision",
	}
	v.Events.Eventf(v.release, corev1.EventTypeWarning, "ReleaseReverted", "Rolled back release %q: objects did not become ready in time", r.want.ID.Name)
}

func (v *visit) failed(do action, fingerprint string, err error) {
	attempt := &addonsv1.FailedAttempt{
		Fingerprint: fingerprint, At: metav1.NewTime(v.Clock.Now()), Failures: 1, Message: bound(err.Error()), Terminal: errors.As(err, new(*tool.TerminalError)),
	}
	if last := v.release.Status.Attempt; last != nil && last.Fingerprint == fingerprint {
		attempt.Failures = last.Failures + 1
	}
	if last := v.release.Status.Attempt; last == nil || last.Message != attempt.Message {
		v.Events.Eventf(v.release, corev1.EventTypeWarning, "ReleaseFailed", "Failed to %s the release: %s", do, attempt.Message)
	}
	v.release.Status.Attempt = attempt
}

// finish lets the object go.
func (v *visit) finish(ctx context.Context) error {
	v.forget(v.key())
	if !controllerutil.RemoveFinalizer(v.release, addonsv1.HelmReleaseProxyFinalizer) {
		return nil
	}
	return client.IgnoreNotFound(v.Client.Patch(ctx, v.release, client.MergeFrom(v.before)))
}

func objects(changes []tool.Change) []string {
	var names []string
	for _, c := range changes {
		names = append(names, c.Object.Kind+" "+c.Object.Name)
	}
	return names
}
