package helm

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/drover-dev/drover/internal/workload"
	"github.com/drover-dev/drover/internal/workload/tool"
	obj "github.com/drover-dev/drover/internal/workload/tool/objects"
)

// Health reads the objects of the newest revision and starts watching their kinds.
func (e *Engine) Health(ctx context.Context, cluster *workload.Cluster, want tool.Want) (tool.Health, error) {
	o := e.begin(cluster, want)
	return withHistory(ctx, o.records, o.health)
}

func (o *operation) health(ctx context.Context, h history) (tool.Health, error) {
	if len(h) == 0 {
		return tool.Health{Message: "release not found"}, nil
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
		o.follow(objects[i])
		verdicts[i], err = o.engine.health.Check(ctx, &w.Writer, &objects[i].Object)
		return err
	})
	return obj.Summary(verdicts), err
}

// newest reads the newest revision. If that is superseded, the watch is behind, and the records are
// listed.
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

// follow starts watching an object's kind.
func (o *operation) follow(object *object) {
	if object.Known() {
		o.cluster.Follow(watchOf(object))
	}
}
