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

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	"github.com/drover-dev/drover/internal/base/text"
	"github.com/drover-dev/drover/internal/controllers/operation"
	"github.com/drover-dev/drover/internal/controllers/reconcile"
	"github.com/drover-dev/drover/internal/model/delegation"
	"github.com/drover-dev/drover/internal/model/lockstep"
	"github.com/drover-dev/drover/internal/workload"
	"github.com/drover-dev/drover/internal/workload/tool"
)

// act decides what to do and starts it. It ends the reconcile if there is nothing to report.
func (v *visit) act(ctx context.Context) error {
	v.choice = decide(v.facts)
	v.next = v.choice.after
	if err := v.start(ctx); err != nil {
		return err
	}
	switch {
	case v.choice.do == finish, v.choice.do == abandon:
		v.next = 0
		if err := v.finish(ctx); err != nil {
			return err
		}
		return reconcile.Stop
	case v.choice.transient(v.facts) && !v.concluded:
		v.next = earlier(v.choice.after, patience)
		return reconcile.Stop
	default:
		return nil
	}
}

// start starts the chosen operation.
func (v *visit) start(ctx context.Context) error {
	f, do := &v.facts, v.choice.do
	switch do {
	case nothing, finish:
		return nil
	case abort:
		v.operations.Cancel(v.key())
		return nil
	case abandon:
		why := fmt.Sprintf("cluster %q was unreachable for %s", v.cluster(), f.giveUpAfter())
		if f.denied {
			why = f.clusterProblem.message
		}
		v.Events.Eventf(v.release, corev1.EventTypeWarning, "ReleaseAbandoned",
			"Gave up uninstalling release %q in namespace %q: %s", f.want.ID.Name, f.want.ID.Namespace, why)
		return nil
	}
	connection, err := v.Clusters.Get(ctx, v.cluster())
	if err != nil {
		return fmt.Errorf("connecting to cluster %q: %w", v.cluster(), err)
	}
	account, err := connection.As(delegation.User(v.release.Namespace, v.release.Spec.ServiceAccountName))
	if err != nil {
		return err
	}
	want, err := f.complete()
	if err != nil {
		return err
	}
	j := job{
		key: v.key(), do: do, cluster: account, through: connection, tool: v.tool, want: want, state: f.state, clock: v.Clock, memory: &v.memory,
	}
	v.operations.Start(operation.Work{
		For: v.key(), Cluster: v.cluster(), Subject: f.subject(), Do: func(ctx context.Context) (any, error) { return j.run(ctx) },
	})
	return nil
}

// job runs outside the workers. It shares nothing with the reconcile that started it.
type job struct {
	key client.ObjectKey
	do  action
	// cluster has the privileges of the release, and through is the connection below it.
	cluster *workload.Cluster
	through *workload.Cluster
	tool    tool.Tool
	want    tool.Want
	state   tool.State
	clock   clock.PassiveClock
	memory  *memory
}

// result is the result of a job.
type result struct {
	do      action
	through *workload.Cluster
	want    tool.Want
	state   tool.State
	health  tool.Health
	changes []tool.Change
	// about is what the package that was applied says about itself.
	about tool.Description
	// began is when the job started, so that later changes are checked again.
	began time.Time
}

func (j job) run(ctx context.Context) (result, error) {
	r := result{do: j.do, through: j.through, want: j.want, state: j.state, began: j.clock.Now()}
	r.want.Correct = j.do == compare || j.do == correct
	j.memory.update(j.key, func(k *knowledge) {
		k.changed = k.changed && j.do != check
		k.specChanged = k.specChanged && !r.want.Correct
	})
	var err error
	switch j.do {
	case apply:
		if r.state, err = j.tool.Apply(ctx, j.cluster, r.want); err == nil {
			r.about, err = j.describe(ctx)
		}
	case correct:
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

// describe returns what the package says about itself, if the tool knows.
func (j job) describe(ctx context.Context) (tool.Description, error) {
	if d, ok := j.tool.(tool.Describer); ok {
		return d.Describe(ctx, j.want)
	}
	return tool.Description{}, nil
}

// revert rolls back to the previous revision, or uninstalls if there is none.
func (j job) revert(ctx context.Context) (tool.State, error) {
	back, ok := j.tool.(tool.Reverter)
	if !ok || j.state.Revision <= 1 {
		return tool.State{}, j.tool.Remove(ctx, j.cluster, j.want)
	}
	return back.Revert(ctx, j.cluster, j.want, 0)
}

// conclude records how the last operation ended, if one did.
func (v *visit) conclude(context.Context) error {
	outcome, ended := v.operations.Take(v.key())
	if !ended || errors.Is(outcome.Err, context.Canceled) {
		return nil
	}
	v.concluded = true
	r, _ := outcome.Value.(result)
	if outcome.Err != nil {
		v.recordFailure(r.do, outcome.Subject, outcome.Err)
	} else {
		v.recordSuccess(r, outcome.Subject)
	}
	return nil
}

// recordSuccess records the result of an operation that succeeded.
func (v *visit) recordSuccess(r result, subject string) {
	if r.do != check && r.do != compare {
		v.memory.setExpected(v.key(), r.state, v.Clock.Now())
		v.clearAttempt()
	}
	switch r.do {
	case apply:
		v.recordApplied(r, subject)
	case correct:
		v.Events.Event(v.release, corev1.EventTypeNormal, "DriftCorrected", "Corrected objects that had drifted")
		v.remember(r, func(k *knowledge) { k.drift = &[]tool.Change{} })
	case revert:
		v.recordReverted(r, subject)
	case check:
		v.remember(r, func(k *knowledge) { k.health, k.checked = &r.health, r.began })
	case compare:
		v.remember(r, func(k *knowledge) { k.drift = &r.changes })
		if len(r.changes) > 0 {
			v.Events.Eventf(v.release, corev1.EventTypeWarning, "DriftDetected", "Found drift in %s", text.FirstN(objects(r.changes), maxNamed))
		}
	}
}

// clearAttempt clears failures, except for a reverted attempt, which must not be repeated.
func (v *visit) clearAttempt() {
	if a := v.release.Status.Attempt; a != nil && !a.Reverted {
		v.release.Status.Attempt = nil
	}
}

// remember updates what is known of a release through a connection.
func (v *visit) remember(r result, change func(*knowledge)) {
	v.memory.update(v.key(), func(k *knowledge) {
		if k.stamp != r.state.Stamp || k.through != r.through {
			*k = knowledge{stamp: r.state.Stamp, through: r.through, changed: k.changed, specChanged: k.specChanged}
		}
		change(k)
	})
}

// maxRange bounds what a chart can put into the status.
const maxRange = 256

func (v *visit) recordApplied(r result, fingerprint string) {
	before := v.release.Status.Revision
	now := metav1.NewTime(v.Clock.Now())
	v.release.Status.Applied = &addonsv1.AppliedRelease{
		Fingerprint: fingerprint, Chart: r.want.Resolved.Digest, Version: r.want.Resolved.Version, Stamp: r.state.Stamp, At: &now,
		Kubernetes: text.TruncateTo(r.about.Kubernetes, maxRange),
	}
	if stage, ok := lockstep.ParseStage(r.about.Annotations[addonsv1.UpgradeStageAnnotation]); ok {
		v.release.Status.Applied.UpgradeStage = stage
	}
	v.release.Status.Attempt = nil
	if r.state.Revision != before {
		setUnchecked(v.release)
		v.Events.Eventf(v.release, corev1.EventTypeNormal, "ReleaseApplied",
			"Deployed revision %d of release %q with version %s", r.state.Revision, r.want.ID.Name, r.want.Resolved.Version)
	}
}

func (v *visit) recordReverted(r result, fingerprint string) {
	v.release.Status.Attempt = &addonsv1.FailedAttempt{
		Fingerprint: fingerprint, At: metav1.NewTime(v.Clock.Now()), Failures: 1, Reverted: true,
		Message: "Objects did not become ready in time; rolled back to the previous revision",
	}
	v.Events.Eventf(v.release, corev1.EventTypeWarning, "ReleaseReverted", "Rolled back release %q: objects did not become ready in time", r.want.ID.Name)
}

func (v *visit) recordFailure(do action, fingerprint string, err error) {
	attempt := &addonsv1.FailedAttempt{
		Fingerprint: fingerprint, At: metav1.NewTime(v.Clock.Now()), Failures: 1, Message: text.Truncate(err.Error()), Terminal: errors.As(err, new(*tool.TerminalError)),
	}
	if last := v.release.Status.Attempt; last != nil && last.Fingerprint == fingerprint {
		attempt.Failures = last.Failures + 1
	}
	if last := v.release.Status.Attempt; last == nil || last.Message != attempt.Message {
		v.Events.Eventf(v.release, corev1.EventTypeWarning, "ReleaseFailed", "Failed to %s the release: %s", do, attempt.Message)
	}
	v.release.Status.Attempt = attempt
}

// finish removes the finalizer.
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
