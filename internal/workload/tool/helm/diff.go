package helm

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drover-dev/drover/internal/workload"
	"github.com/drover-dev/drover/internal/workload/tool"
	obj "github.com/drover-dev/drover/internal/workload/tool/objects"
)

// Diff dry-runs the apply of all objects.
func (e *Engine) Diff(ctx context.Context, cluster *workload.Cluster, want tool.Want) ([]tool.Change, error) {
	o := e.begin(cluster, want)
	return withHistory(ctx, o.records, o.diff)
}

func (o *operation) diff(ctx context.Context, h history) ([]tool.Change, error) {
	s, err := o.observe(ctx, h)
	if err != nil {
		return nil, err
	}
	next, err := o.next(ctx, s)
	if err != nil {
		return nil, err
	}
	if next.adopt && !o.want.Correct {
		return nil, nil
	}
	objects, err := o.wanted(ctx, s, next)
	if err != nil {
		return nil, err
	}
	changes := make([]*tool.Change, len(objects))
	w := o.writer()
	err = obj.InParallel(ctx, obj.Indexes(objects), func(ctx context.Context, i int) error {
		var err error
		changes[i], err = w.compare(ctx, objects[i])
		return err
	})
	if err != nil {
		return nil, err
	}
	gone, err := o.deletions(ctx, s, objects)
	return append(slices.DeleteFunc(dereference(changes), func(c tool.Change) bool { return c.Action == "" }), gone...), err
}

func dereference(changes []*tool.Change) []tool.Change {
	out := make([]tool.Change, len(changes))
	for i, c := range changes {
		if c != nil {
			out[i] = *c
		}
	}
	return out
}

// wanted returns the objects to compare with.
func (o *operation) wanted(ctx context.Context, s *situation, next step) ([]*object, error) {
	if next.adopt {
		objects, err := o.objects(s.newest.Manifest)
		for _, object := range objects {
			o.follow(object)
		}
		return objects, err
	}
	chart, err := o.engine.charts.load(ctx, o.want.Package, o.want.Resolved)
	if err != nil {
		return nil, err
	}
	values := effective(o.want.Options.Upgrade, o.want.Values, s.last())
	if err := o.reuse(chart, s.last()); err != nil {
		return nil, err
	}
	crds, err := o.crds(ctx, chart, values)
	if err != nil {
		return nil, err
	}
	rec, err := o.render(ctx, chart, values, next)
	if err != nil {
		return nil, err
	}
	objects, err := parse(rec.Manifest)
	if err != nil {
		return nil, &tool.TerminalError{Err: err}
	}
	// The kinds in crds do not exist before the first installation.
	return objects, obj.LocateAll(slices.Concat(crds, objects), o.cluster.Mapper(), o.want.ID.Namespace)
}

// deletions returns a change for each object that would be deleted.
func (o *operation) deletions(ctx context.Context, s *situation, objects []*object) ([]tool.Change, error) {
	old, err := o.old(s)
	if err != nil {
		return nil, err
	}
	w := o.writer()
	var out []tool.Change
	for _, object := range obsolete(old, objects) {
		live, err := w.Client(&object.Object).Get(ctx, object.GetName(), metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", object.Title(), err)
		}
		if !kept(object.Unstructured) && !kept(live) && !ownedByOther(live, o.want.ID) {
			out = append(out, tool.Change{Object: object.Named(), Action: tool.Delete})
		}
	}
	return out, nil
}

// compare returns nil for an object that is up to date.
func (w *writer) compare(ctx context.Context, o *object) (*tool.Change, error) {
	create := obj.Creation(&o.Object)
	if !o.Known() {
		return &create, nil
	}
	live, err := w.Client(&o.Object).Get(ctx, o.GetName(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return &create, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", o.Title(), err)
	}
	o.claim(w.Want.ID)
	diff, err := w.Difference(ctx, &o.Object, live)
	if err != nil || diff == "" {
		return nil, err
	}
	return &tool.Change{Object: o.Named(), Action: tool.Update, Diff: diff}, nil
}
