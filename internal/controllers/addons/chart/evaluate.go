package chart

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	"github.com/drover-dev/drover/internal/model/addons/desired"
	"github.com/drover-dev/drover/internal/model/addons/plan"
)

// recordRevision parses the templates and records a new spec, so that it can be restored.
func (c *Controller) recordRevision(ctx context.Context, s *scope) error {
	entry := c.programs.get(s.chart)
	s.program, s.revision = entry.program, entry.digest
	if entry.program == nil {
		s.addProblem(problem{"", addonsv1.ValueParsingFailedReason, entry.err, true})
		return nil
	}
	if entry.isRecorded() {
		return nil
	}
	good := ""
	if r := s.chart.Status.Rollout; r != nil {
		good = cmp.Or(r.LastGood, r.Revision)
	}
	if err := c.history().Record(ctx, s.chart, good); err != nil {
		return err
	}
	entry.setRecorded()
	return nil
}

// evaluateAll finds the change of each cluster that leads to the current spec.
func (c *Controller) evaluateAll(ctx context.Context, s *scope) error {
	return forEach(s, func(t *target) {
		if s.program == nil {
			s.exclude(t)
			return
		}
		t.change, t.problem = c.evaluate(ctx, s, t, s.program)
		if t.problem != nil {
			s.addProblem(*t.problem)
			s.exclude(t)
		}
	})
}

// forEach calls do for all clusters that are not skipped, several at a time.
func forEach(s *scope, do func(*target)) error {
	group := errgroup.Group{}
	group.SetLimit(parallel)
	for _, t := range s.targets {
		if t.skip {
			continue
		}
		group.Go(func() error {
			do(t)
			return nil
		})
	}
	return group.Wait()
}

// evaluate returns the change for one cluster. It renders nothing if no input has changed since
// there was nothing to do.
func (c *Controller) evaluate(ctx context.Context, s *scope, t *target, program *desired.Program) (plan.Change, *problem) {
	found, p := c.readObjects(ctx, t, program)
	if p != nil {
		return plan.Change{}, p
	}
	found.Release = t.release
	stamp := stampOf(s, t, found)
	if program == s.program && c.settled.has(s.Key(), t.cluster.UID, stamp) {
		return plan.Change{Verb: plan.Keep}, nil
	}
	want, err := plan.Want(s.chart, program, found)
	if err != nil {
		return plan.Change{}, &problem{t.cluster.Name, addonsv1.ValueParsingFailedReason, err, true}
	}
	change := plan.Decide(s.chart, t.release, want)
	if change.Verb == plan.Keep && program == s.program {
		c.settled.set(s.Key(), t.cluster.UID, stamp)
	}
	return change, nil
}

// readObjects reads and watches the objects that templates refer to, including missing ones.
func (c *Controller) readObjects(ctx context.Context, t *target, program *desired.Program) (desired.Facts, *problem) {
	found, err := desired.Read(ctx, c.Client, t.cluster, program.Uses())
	objects := []*unstructured.Unstructured{found.ControlPlane, found.InfraCluster}
	var missing *desired.MissingError
	if errors.As(err, &missing) {
		stub := &unstructured.Unstructured{}
		stub.SetGroupVersionKind(missing.GroupVersionKind)
		objects = append(objects, stub)
	}
	if watchErr := c.watchObjects(ctx, objects); watchErr != nil {
		return found, &problem{t.cluster.Name, addonsv1.ValueParsingFailedReason, watchErr, false}
	}
	if err != nil {
		return found, &problem{t.cluster.Name, addonsv1.ValueParsingFailedReason, err, missing != nil && c.watch != nil}
	}
	return found, nil
}

func (c *Controller) watchObjects(ctx context.Context, objects []*unstructured.Unstructured) error {
	for _, obj := range objects {
		if obj == nil || c.watch == nil {
			continue
		}
		if err := c.watch.Watch(logger(ctx), obj, &objectEvents{c}); err != nil {
			return fmt.Errorf("watching %s: %w", obj.GetKind(), err)
		}
	}
	return nil
}
