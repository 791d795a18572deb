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
	"github.com/drover-dev/drover/internal/model/addons/history"
	"github.com/drover-dev/drover/internal/model/addons/plan"
)

// remember reads the templates, and keeps a spec that is new for the day when somebody wants it back.
func (c *Controller) remember(ctx context.Context, s *scope) error {
	entry := c.programs.get(s.chart)
	s.program, s.revision = entry.program, entry.digest
	if entry.program == nil {
		s.note(problem{"", addonsv1.ValueParsingFailedReason, entry.err, true})
		return nil
	}
	if entry.kept() {
		return nil
	}
	good := ""
	if r := s.chart.Status.Rollout; r != nil {
		good = cmp.Or(r.LastGood, r.Revision)
	}
	if err := c.history().Record(ctx, s.chart, good); err != nil {
		return err
	}
	entry.keep()
	return nil
}

// examine finds out what would have to be done on each cluster to give it what the spec says.
func (c *Controller) examine(ctx context.Context, s *scope) error {
	return each(s, func(t *target) {
		if s.program == nil {
			s.drop(t)
			return
		}
		t.move, t.problem = c.look(ctx, s, t, s.program)
		if t.problem != nil {
			s.note(*t.problem)
			s.drop(t)
		}
	})
}

// each does something for all clusters that are not left out, several at a time.
func each(s *scope, do func(*target)) error {
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

// drop leaves a cluster out from here on.
func (s *scope) drop(t *target) {
	t.skip = true
	if t.release != nil {
		s.leaves(t.release)
	}
}

// look works out the move for one cluster. If everything that it depends on is as it was when nothing had to be done, nothing has to.
func (c *Controller) look(ctx context.Context, s *scope, t *target, program *desired.Program) (plan.Change, *problem) {
	found, wrong := c.observe(ctx, t, program)
	if wrong != nil {
		return plan.Change{}, wrong
	}
	found.Release = t.release
	stamp := stampOf(s, t, found)
	if program == s.program && c.settled.has(s.key(), t.cluster.UID, stamp) {
		return plan.Change{Verb: plan.Keep}, nil
	}
	want, err := program.For(s.key(), found)
	if err != nil {
		return plan.Change{}, &problem{t.cluster.Name, addonsv1.ValueParsingFailedReason, err, true}
	}
	m := plan.Decide(s.chart, t.release, want)
	if m.Verb == plan.Keep && program == s.program {
		c.settled.note(s.key(), t.cluster.UID, stamp)
	}
	return m, nil
}

// observe reads what the templates refer to, and makes its changes come in. That an object which is missing appears is a change too.
func (c *Controller) observe(ctx context.Context, t *target, program *desired.Program) (desired.Facts, *problem) {
	found, err := desired.Read(ctx, c.Client, t.cluster, program.Uses())
	objects := []*unstructured.Unstructured{found.ControlPlane, found.InfraCluster}
	var missing *desired.MissingError
	if errors.As(err, &missing) {
		stub := &unstructured.Unstructured{}
		stub.SetGroupVersionKind(missing.GroupVersionKind)
		objects = append(objects, stub)
	}
	if followErr := c.follow(ctx, objects); followErr != nil {
		return found, &problem{t.cluster.Name, addonsv1.ValueParsingFailedReason, followErr, false}
	}
	if err != nil {
		return found, &problem{t.cluster.Name, addonsv1.ValueParsingFailedReason, err, missing != nil && c.watch != nil}
	}
	return found, nil
}

func (c *Controller) follow(ctx context.Context, objects []*unstructured.Unstructured) error {
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

// lastGood reads the templates of what was rolled out completely before.
func (c *Controller) lastGood(ctx context.Context, s *scope, digest string) error {
	revision, err := history.Find(ctx, c.Live, s.chart, digest)
	if err != nil {
		return err
	}
	program, problems := desired.Compile(&revision.Spec)
	if len(problems) > 0 {
		return problems.ToAggregate()
	}
	s.good = program
	return nil
}
