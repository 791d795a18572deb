package manifests

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drover-dev/drover/internal/workload/tool"
	"github.com/drover-dev/drover/internal/workload/tool/objects"
)

func (o *operation) diff(ctx context.Context, rec *record) ([]tool.Change, error) {
	if o.upToDate(rec) && !o.want.Correct {
		return nil, nil
	}
	next := rec
	if !o.upToDate(rec) {
		var err error
		if next, err = o.next(ctx, rec); err != nil {
			return nil, err
		}
	}
	all := next.all()
	if err := objects.LocateAll(all, o.cluster.Mapper(), o.want.ID.Namespace); err != nil {
		return nil, err
	}
	if rec != nil && rec.Status == tool.Deployed {
		inherit(all, rec.all())
	}
	changes := make([]tool.Change, len(all))
	w := o.writer()
	err := objects.InParallel(ctx, objects.Indexes(all), func(ctx context.Context, i int) error {
		var err error
		changes[i], err = w.compare(ctx, all[i])
		return err
	})
	if err != nil {
		return nil, err
	}
	gone, err := o.deletions(ctx, next.leftovers(), all)
	return slices.DeleteFunc(slices.Concat(changes, gone), func(c tool.Change) bool { return c.Action == "" }), err
}

// deletions returns a change for each object that would be deleted.
func (o *operation) deletions(ctx context.Context, all, keep []*object) ([]tool.Change, error) {
	obsolete, err := o.obsolete(all, keep)
	if err != nil {
		return nil, err
	}
	w := o.writer()
	var out []tool.Change
	for _, one := range obsolete {
		live, err := w.deletable(ctx, one)
		if err != nil {
			return nil, err
		}
		if live != nil {
			out = append(out, tool.Change{Object: one.Named(), Action: tool.Delete})
		}
	}
	return out, nil
}

// compare returns a change without an action for an object that is up to date.
func (w *writer) compare(ctx context.Context, o *object) (tool.Change, error) {
	if !o.Known() {
		return objects.Creation(&o.Object), nil
	}
	w.Cluster.Follow(watchOf(o))
	live, err := w.Client(&o.Object).Get(ctx, o.GetName(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return objects.Creation(&o.Object), nil
	}
	if err != nil {
		return tool.Change{}, fmt.Errorf("reading %s: %w", o.Title(), err)
	}
	if !w.isReleaseNamespace(o) {
		if err := w.checkOwner(o, live); err != nil {
			return tool.Change{}, fmt.Errorf("dry-running the apply of %s: %w", o.Title(), err)
		}
		w.claim(o)
	}
	diff, err := w.Difference(ctx, &o.Object, live)
	if err != nil || diff == "" {
		return tool.Change{}, err
	}
	return tool.Change{Object: o.Named(), Action: tool.Update, Diff: diff}, nil
}

func (o *operation) checkHealth(ctx context.Context, rec *record) (tool.Health, error) {
	if rec == nil {
		return tool.Health{Message: "installation not found"}, nil
	}
	all := rec.all()
	err := objects.LocateAll(all, o.cluster.Mapper(), o.want.ID.Namespace)
	if meta.IsNoMatchError(err) {
		return tool.Health{Message: err.Error()}, nil
	}
	if err != nil {
		return tool.Health{}, err
	}
	verdicts := make([]objects.Verdict, len(all))
	w := o.writer()
	err = objects.InParallel(ctx, objects.Indexes(all), func(ctx context.Context, i int) error {
		var err error
		if all[i].Known() {
			o.cluster.Follow(watchOf(all[i]))
		}
		verdicts[i], err = o.health.Check(ctx, &w.Writer, &all[i].Object)
		return err
	})
	return objects.Summary(verdicts), err
}
