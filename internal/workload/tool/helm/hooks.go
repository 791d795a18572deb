package helm

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	releasev1 "helm.sh/helm/v4/pkg/release/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	obj "github.com/drover-dev/drover/internal/workload/tool/objects"
)

// hookError reports that a hook ran and failed.
type hookError struct{ err error }

func (h *hookError) Error() string { return h.err.Error() }

func (h *hookError) Unwrap() error { return h.err }

// hooks runs the hooks of an event one after the other, and waits for Jobs and Pods to finish.
func (o *operation) hooks(ctx context.Context, rec *record, event releasev1.HookEvent) error {
	if o.want.Options.DisableHooks {
		return nil
	}
	due := dueHooks(rec.Hooks, event)
	for i, h := range due {
		err := o.runHook(ctx, h)
		if err == nil {
			continue
		}
		if ctx.Err() == nil {
			err = errors.Join(err, o.clearHooks(ctx, due[i:i+1], releasev1.HookFailed), o.clearHooks(ctx, due[:i], releasev1.HookSucceeded))
		}
		return fmt.Errorf("running %s hook %q: %w", event, h.Path, err)
	}
	slices.Reverse(due)
	return o.clearHooks(ctx, due, releasev1.HookSucceeded)
}

// dueHooks returns the hooks of an event by weight, then by name.
func dueHooks(all []*releasev1.Hook, event releasev1.HookEvent) []*releasev1.Hook {
	var due []*releasev1.Hook
	for _, h := range all {
		if !slices.Contains(h.Events, event) {
			continue
		}
		if len(h.DeletePolicies) == 0 {
			h.DeletePolicies = []releasev1.HookDeletePolicy{releasev1.HookBeforeHookCreation}
		}
		due = append(due, h)
	}
	slices.SortStableFunc(due, func(a, b *releasev1.Hook) int {
		if a.Weight != b.Weight {
			return a.Weight - b.Weight
		}
		return strings.Compare(a.Name, b.Name)
	})
	return due
}

func (o *operation) runHook(ctx context.Context, h *releasev1.Hook) error {
	if err := o.clearHooks(ctx, []*releasev1.Hook{h}, releasev1.HookBeforeHookCreation); err != nil {
		return err
	}
	objects, err := o.objects(h.Manifest)
	if err != nil {
		return err
	}
	h.LastRun = releasev1.HookExecution{StartedAt: time.Now(), Phase: releasev1.HookPhaseFailed}
	defer func() { h.LastRun.CompletedAt = time.Now() }()
	w := o.writer()
	for _, object := range objects {
		if err := w.Patch(ctx, &object.Object, object.Unstructured); err != nil {
			return w.Failed("applying", &object.Object, err)
		}
		if err := o.awaitHook(ctx, w, object); err != nil {
			return err
		}
	}
	h.LastRun.Phase = releasev1.HookPhaseSucceeded
	return nil
}

// awaitHook waits for a Job or Pod to finish.
func (o *operation) awaitHook(ctx context.Context, w *writer, hook *object) error {
	ended, ok := hookEnds[hook.GroupVersionKind().GroupKind().String()]
	if !ok {
		return nil
	}
	err := obj.Await(ctx, w.Client(&hook.Object), hook.GetName(), func(u *unstructured.Unstructured) (bool, error) {
		if u == nil {
			return false, &hookError{fmt.Errorf("%s was deleted before it ended", hook.Title())}
		}
		succeeded, failed := ended(u)
		if failed {
			return false, &hookError{fmt.Errorf("%s failed", hook.Title())}
		}
		return succeeded, nil
	})
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("waiting for %s to end: %w", hook.Title(), context.Cause(ctx))
	}
	return err
}

// hookEnds report how an object of a kind has finished.
var hookEnds = map[string]func(*unstructured.Unstructured) (succeeded, failed bool){
	"Job.batch": func(u *unstructured.Unstructured) (bool, bool) {
		return obj.Condition(u, "Complete") == "True", obj.Condition(u, "Failed") == "True"
	},
	"Pod": func(u *unstructured.Unstructured) (bool, bool) {
		phase, _, _ := unstructured.NestedString(u.Object, "status", "phase")
		return phase == "Succeeded", phase == "Failed"
	},
}

// clearHooks deletes the objects of hooks with a policy and waits until they are gone. It keeps
// CRDs, whose deletion would delete all their objects.
func (o *operation) clearHooks(ctx context.Context, hooks []*releasev1.Hook, policy releasev1.HookDeletePolicy) error {
	w := o.writer()
	for _, h := range hooks {
		if h.Kind == obj.CRDKind || !slices.Contains(h.DeletePolicies, policy) {
			continue
		}
		objects, err := parse(h.Manifest)
		if err == nil {
			objects, err = obj.LocateSome(objects, o.cluster.Mapper(), o.want.ID.Namespace)
		}
		if err != nil {
			return err
		}
		for _, object := range objects {
			if err := clearHook(ctx, w, object); err != nil {
				return fmt.Errorf("deleting %s: %w", object.Title(), err)
			}
		}
	}
	return nil
}

func clearHook(ctx context.Context, w *writer, hook *object) error {
	err := w.Client(&hook.Object).Delete(ctx, hook.GetName(), deletion(""))
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	live, err := w.Client(&hook.Object).Get(ctx, hook.GetName(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	return obj.AwaitGone(ctx, w.Client(&hook.Object), live)
}
