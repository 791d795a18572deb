package lifecycle

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	droverv1 "github.com/drover-dev/drover/api/drover/v1alpha1"
	"github.com/drover-dev/drover/internal/operate/inspect"
	"github.com/drover-dev/drover/internal/operate/lifecycle/phase"
)

// GitError means that a change can't be committed or applied until somebody acts.
type GitError struct{ Cluster, Change, Problem string }

func (e *GitError) Error() string {
	return fmt.Sprintf("changing cluster %q through Git failed: %s\nTry: drover gitops status", e.Cluster, e.Problem)
}

// stage is how far a GitChange has come.
type stage int

const (
	requested stage = iota
	committed
	applied
)

// String says what has become of the cluster's files.
func (s stage) String() string {
	return [...]string{"the change was requested", "the cluster's files were changed", "Flux has applied the cluster's files"}[s]
}

const waitingForCommit = "Waiting for the manager to commit the change"

// changeState is the state of a GitChange.
type changeState struct {
	stage stage
	// waiting is the current activity.
	waiting string
	// problem is set if somebody must act, although the manager or Flux keeps trying.
	problem string
	// final is set if nobody tries any longer.
	final bool
}

// stateOf derives the state of a GitChange from its conditions.
//
//	requested ──Committed──▶ committed ──Applied──▶ applied
//	    └──Invalid──▶ final
func stateOf(g *droverv1.GitChange) changeState {
	c := apimeta.FindStatusCondition(g.Status.Conditions, droverv1.GitCommitted)
	switch {
	case c == nil:
		return changeState{waiting: waitingForCommit}
	case c.Status == metav1.ConditionUnknown:
		return changeState{waiting: strings.TrimSuffix(waitingForCommit+": "+c.Message, ": ")}
	case c.Status == metav1.ConditionTrue:
		return appliedState(g)
	case c.Reason == droverv1.GitInvalidReason:
		return changeState{problem: c.Message, final: true}
	case c.Reason == droverv1.GitDeniedReason:
		return changeState{waiting: "Waiting for access to the repository: " + c.Message, problem: c.Message}
	}
	return changeState{waiting: "Waiting for the Git server: " + cmp.Or(c.Message, c.Reason)}
}

// appliedState derives the state of a GitChange that is committed.
func appliedState(g *droverv1.GitChange) changeState {
	s := changeState{stage: committed, waiting: "Waiting for Flux to apply commit " + shortCommit(g.Status.Commit)}
	c := apimeta.FindStatusCondition(g.Status.Conditions, droverv1.GitApplied)
	switch {
	case c == nil:
	case c.Status == metav1.ConditionTrue:
		s.stage, s.waiting = applied, ""
	case c.Reason == droverv1.GitApplyFailedReason:
		s.waiting, s.problem = s.waiting+": "+c.Message, c.Message
	}
	return s
}

// shortCommit abbreviates the ID of a commit for people.
func shortCommit(id string) string {
	const length = 12
	if len(id) > length {
		return id[:length]
	}
	return id
}

// changeFollower waits for what becomes of a GitChange.
type changeFollower struct {
	plane    *inspect.Plane
	key      client.ObjectKey
	cluster  string
	progress *phase.Progress
	// grace is how long a problem must last before it counts: the conditions of Flux may be those of
	// an earlier commit for a moment.
	grace time.Duration

	failing time.Time
	last    changeState
	commit  string
}

func (w *Workload) followChange(p *phase.Progress, change string) *changeFollower {
	return &changeFollower{
		plane: w.plane, key: client.ObjectKey{Namespace: w.key().Namespace, Name: change}, cluster: w.key().Name,
		progress: p, grace: cmp.Or(w.gitGrace, failureGrace),
	}
}

// until waits until the GitChange has reached a stage. A limit of 0 is none.
func (f *changeFollower) until(ctx context.Context, want stage, limit time.Duration) error {
	limited, cancel := context.WithCancel(ctx)
	if limit > 0 {
		limited, cancel = context.WithTimeout(ctx, limit)
	}
	defer cancel()
	for changes := f.plane.Watch(limited, &droverv1.GitChangeList{}, f.key); ; {
		done, err := f.check(limited, want)
		switch {
		case ctx.Err() == nil && limited.Err() != nil:
			return &TimeoutError{Cluster: f.cluster, Limit: limit, Waiting: f.last.waiting, Next: "drover gitops status"}
		case done || err != nil:
			return err
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

// check reads the GitChange and reports whether it has reached a stage.
func (f *changeFollower) check(ctx context.Context, want stage) (bool, error) {
	g := &droverv1.GitChange{}
	err := f.plane.Client.Get(ctx, f.key, g)
	var status apierrors.APIStatus
	switch {
	case apierrors.IsNotFound(err):
		return false, fmt.Errorf("GitChange %q was deleted by someone else: run the command again", f.key.Name)
	case err != nil && ctx.Err() == nil && !errors.As(err, &status):
		f.progress.Waiting("Waiting for the management plane at %s to answer", f.plane.Host)
		return false, nil
	case err != nil:
		return false, fmt.Errorf("reading GitChange %q: %w", f.key.Name, err)
	}
	f.last, f.commit = stateOf(g), g.Status.Commit
	if f.last.stage >= want {
		return true, nil
	}
	if f.last.waiting != "" {
		f.progress.Waiting("%s", f.last.waiting)
	}
	return false, f.failed(time.Now())
}

// failed returns an error once a problem has lasted for long enough.
func (f *changeFollower) failed(now time.Time) error {
	if f.last.problem == "" {
		f.failing = time.Time{}
		return nil
	}
	if f.failing.IsZero() {
		f.failing = now
	}
	if !f.last.final && now.Sub(f.failing) < f.grace {
		return nil
	}
	return &GitError{Cluster: f.cluster, Change: f.key.Name, Problem: f.last.problem}
}
