package helm

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	obj "github.com/drover-dev/drover/internal/addons/objects"
	"github.com/drover-dev/drover/internal/addons/tool"
	"github.com/drover-dev/drover/internal/workload"
)

// Health reads the objects of the newest revision. Their kinds are watched from then on.
func (e *Engine) Health(ctx context.Context, cluster *workload.Cluster, want tool.Want) (tool.Health, error) {
	o := e.begin(cluster, want)
	return withHistory(ctx, o.records, o.health)
}

func (o *operation) health(ctx context.Context, h history) (tool.Health, error) {
	if len(h) == 0 {
		return tool.Health{Message: "there is no release"}, nil
	}
	rec, err := o.newest(ctx, h)
	if errors.Is(err, errBroken) {
		return tool.Health{Message: err.Error()}, nil
	}
	if err != nil {
		return tool.Health{}, err
	}
	objects, err := o.objects(rec.Manifest)
	if meta.IsNoMatchError(err) {
		return tool.Health{Message: err.Error()}, nil
	}
	if err != nil {
		return tool.Health{}, err
	}
	verdicts := make([]obj.Verdict, len(objects))
	w := o.writer()
	err = obj.InParallel(ctx, obj.Indexes(objects), func(ctx context.Context, i int) error {
		var err error
		verdicts[i], err = o.judge(ctx, w, objects[i])
		return err
	})
	return obj.Summary(verdicts), err
}

// newest reads the newest revision. One that was superseded is hardly it: the watch has not told of its successor yet.
func (o *operation) newest(ctx context.Context, h history) (*record, error) {
	rec, err := o.records.get(ctx, h[0].revision)
	if err != nil || rec.status() != tool.Superseded {
		return rec, err
	}
	if h, err = o.records.listed(ctx); err != nil || len(h) == 0 || h[0].revision == rec.Version {
		return rec, err
	}
	return o.records.get(ctx, h[0].revision)
}

// judge reads an object and says whether it is ready.
func (o *operation) judge(ctx context.Context, w *writer, object *object) (obj.Verdict, error) {
	if !object.Known() {
		return obj.Verdict{Title: object.Title(), Reason: "its kind is not served yet"}, nil
	}
	o.follow(object)
	if obj.IsJob(object.Unstructured) && !o.want.Options.WaitForJobs {
		return obj.Verdict{Title: object.Title(), Ready: true}, nil
	}
	live, err := w.client(object).Get(ctx, object.GetName(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return obj.Verdict{Title: object.Title(), Reason: "is missing"}, nil
	}
	if err != nil {
		return obj.Verdict{}, fmt.Errorf("reading %s: %w", object.Title(), err)
	}
	v, err := o.engine.health.Verdict(ctx, live, o.want.Health)
	v.Title = object.Title()
	return v, err
}

// follow makes changes of an object's kind an event from now on.
func (o *operation) follow(object *object) {
	if object.Known() {
		o.cluster.Follow(watchOf(object))
	}
}
