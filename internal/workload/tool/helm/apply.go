package helm

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
	releasecommon "helm.sh/helm/v4/pkg/release/common"
	releasev1 "helm.sh/helm/v4/pkg/release/v1"
	releaseutil "helm.sh/helm/v4/pkg/release/v1/util"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	"github.com/drover-dev/drover/internal/workload/tool"
	obj "github.com/drover-dev/drover/internal/workload/tool/objects"
)

func (o *operation) apply(ctx context.Context, h history) (tool.State, error) {
	if err := chartutil.ValidateReleaseName(o.want.ID.Name); err != nil {
		return tool.State{}, &tool.TerminalError{Err: fmt.Errorf("release name %q: %w", o.want.ID.Name, err)}
	}
	s, err := o.observe(ctx, h)
	if err != nil {
		return tool.State{}, err
	}
	next, err := o.next(ctx, s)
	if err != nil {
		return tool.State{}, err
	}
	if next.adopt {
		return s.newest.state(), o.adopt(ctx, s)
	}
	change, err := o.prepare(ctx, s, next)
	if err != nil {
		return tool.State{}, err
	}
	return o.execute(ctx, s, change)
}

// next decides what to do.
func (o *operation) next(ctx context.Context, s *situation) (step, error) {
	var err error
	if s.newest != nil {
		s.same, err = o.matchesWant(ctx, s.newest, s.last())
	}
	return decide(s), err
}

// fingerprint identifies an archive and how it is rendered.
func (o *operation) fingerprint() string {
	if o.want.Options.Install.IncludeCRDs {
		return o.want.Resolved.Digest + "+crds"
	}
	return o.want.Resolved.Digest
}

// matchesWant reports whether a revision was made from what is wanted. It loads the chart only for
// revisions that Drover didn't make.
func (o *operation) matchesWant(ctx context.Context, rec, last *record) (bool, error) {
	if rec.Chart == nil || rec.Chart.Metadata == nil || !equalValues(rec.Config, effective(o.want.Options.Upgrade, o.want.Values, last)) {
		return false, nil
	}
	if rec.chart != "" && o.want.Resolved.Digest != "" {
		return rec.chart == o.fingerprint(), nil
	}
	chart, err := o.engine.charts.load(ctx, o.want.Package, o.want.Resolved)
	if err != nil {
		return false, err
	}
	have := rec.Chart.Metadata
	return have.Name == chart.Name() && have.Version == chart.Metadata.Version && sameTemplates(rec.Chart, chart), nil
}

// execute rolls out a revision. It can be repeated from any point.
func (o *operation) execute(ctx context.Context, s *situation, c *change) (tool.State, error) {
	if err := o.open(ctx, s, c); err != nil {
		return tool.State{}, err
	}
	if err := o.run(ctx, s, c); err != nil {
		return c.state(), o.fail(ctx, c.record, err)
	}
	if err := o.close(ctx, s, c.record, c.done); err != nil {
		return c.state(), err
	}
	return c.state(), nil
}

// open records a pending revision.
func (o *operation) open(ctx context.Context, s *situation, c *change) error {
	if c.resume {
		if s.newest.Info.Status == c.Info.Status {
			return nil
		}
		return o.records.update(ctx, c.record)
	}
	if s.newest != nil && s.newest.Info.Status.IsPending() {
		s.newest.SetStatus(releasecommon.StatusFailed, "Interrupted")
		if err := o.records.update(ctx, s.newest); err != nil {
			return err
		}
	}
	return o.createRecord(ctx, c.record)
}

func (o *operation) timeout() time.Duration {
	if t := o.want.Options.Timeout; t != nil && t.Duration > 0 {
		return t.Duration
	}
	return addonsv1.DefaultTimeout
}

// run applies the objects of a revision and deletes obsolete ones. After a failure it keeps what it
// applied, unless the options ask for cleanup.
func (o *operation) run(ctx context.Context, s *situation, c *change) error {
	ctx, cancel := context.WithTimeout(ctx, o.timeout())
	defer cancel()
	if err := o.hooks(ctx, c.record, c.before); err != nil {
		return err
	}
	old, err := o.old(s)
	if err != nil {
		return err
	}
	inherit(c.objects, old)
	w := o.writer()
	err = w.applyAll(ctx, c.objects)
	if err == nil {
		err = w.removeAll(ctx, obsolete(old, slices.Concat(c.objects, c.crds)), w.prune)
	}
	if err == nil {
		return o.hooks(ctx, c.record, c.after)
	}
	if o.want.Options.Upgrade.CleanupOnFail && !c.first && decided(err) {
		err = errors.Join(err, w.removeAll(ctx, reversed(w.created), w.prune))
	}
	return err
}

// old returns all objects of earlier revisions that may exist.
func (o *operation) old(s *situation) ([]*object, error) {
	var old []*object
	for _, rec := range s.records() {
		objects, err := parse(rec.Manifest)
		if err != nil {
			continue // never applied
		}
		if objects, err = obj.LocateSome(objects, o.cluster.Mapper(), o.want.ID.Namespace); err != nil {
			return nil, err
		}
		for _, object := range objects {
			object.owned = rec == s.base
			object.clientSide = rec == s.base && rec.ApplyMethod != string(releasev1.ApplyMethodServerSideApply)
		}
		old = append(old, objects...)
	}
	return old, nil
}

// inherit copies what earlier revisions know about objects.
func inherit(objects, old []*object) {
	known := map[string]*object{}
	for _, o := range old {
		if o.owned {
			known[o.Identity()] = o
		}
	}
	for _, o := range objects {
		if before := known[o.Identity()]; before != nil {
			o.owned, o.clientSide = true, before.clientSide
		}
	}
}

// obsolete returns the objects in old that are not in current, in the order of deletion.
func obsolete(old, current []*object) []*object {
	wanted := map[string]bool{}
	for _, o := range current {
		wanted[o.Identity()] = true
	}
	var out []*object
	for _, o := range old {
		if id := o.Identity(); !wanted[id] {
			wanted[id] = true
			out = append(out, o)
		}
	}
	return inOrder(out, releaseutil.UninstallOrder)
}

func reversed(objects []*object) []*object {
	out := slices.Clone(objects)
	slices.Reverse(out)
	return out
}

// adopt keeps a revision. It rewrites its objects if Correct is set, and fixes other revisions that
// are recorded as deployed.
func (o *operation) adopt(ctx context.Context, s *situation) error {
	if err := o.supersede(ctx, s, s.newest.Version); err != nil || !o.want.Correct {
		return err
	}
	return o.correct(ctx, s.newest)
}

// correct rewrites the objects of a revision.
func (o *operation) correct(ctx context.Context, rec *record) error {
	objects, err := o.objects(rec.Manifest)
	if err != nil {
		return err
	}
	for _, object := range objects {
		object.owned = true
	}
	w := o.writer()
	w.Want.Options.Upgrade.Force = false
	return w.applyAll(ctx, objects)
}
