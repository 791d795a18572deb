package helm

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/drover-dev/drover/internal/addons/tool"
	"github.com/drover-dev/drover/internal/workload"
)

const (
	// named is how many objects a message names.
	named = 3
	// manyReasons is how much of an object's own words it has.
	manyReasons = 160
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
	verdicts := make([]verdict, len(objects))
	w := o.writer()
	err = inParallel(ctx, indexes(objects), func(ctx context.Context, i int) error {
		var err error
		verdicts[i], err = o.judge(ctx, w, objects[i])
		return err
	})
	return summary(verdicts), err
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

func indexes[T any](items []T) []int {
	out := make([]int, len(items))
	for i := range out {
		out[i] = i
	}
	return out
}

// verdict is what is to be said of one object.
type verdict struct {
	title  string
	ready  bool
	failed bool
	reason string
}

// judge reads an object and says whether it is ready.
func (o *operation) judge(ctx context.Context, w *writer, object *object) (verdict, error) {
	if !object.known() {
		return verdict{title: object.title(), reason: "its kind is not served yet"}, nil
	}
	o.cluster.Follow(watchOf(object))
	isJob := object.GroupVersionKind().GroupKind().String() == "Job.batch"
	if isJob && !o.want.Options.WaitForJobs {
		return verdict{title: object.title(), ready: true}, nil
	}
	live, err := w.client(object).Get(ctx, object.GetName(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return verdict{title: object.title(), reason: "is missing"}, nil
	}
	if err != nil {
		return verdict{}, fmt.Errorf("reading %s: %w", object.title(), err)
	}
	v, err := o.verdictOn(ctx, live)
	v.title = object.title()
	return v, err
}

func (o *operation) verdictOn(ctx context.Context, live *unstructured.Unstructured) (verdict, error) {
	for _, check := range o.want.Health {
		if check.APIVersion == live.GetAPIVersion() && check.Kind == live.GetKind() {
			return o.engine.health.check(ctx, check, live)
		}
	}
	if ends := hookEnds[live.GroupVersionKind().GroupKind().String()]; ends != nil && live.GetKind() == "Job" {
		succeeded, failed := ends(live)
		return verdict{ready: succeeded, failed: failed, reason: "has not completed"}, nil
	}
	result, err := status.Compute(live)
	if err != nil {
		return verdict{reason: "has a status that can't be read"}, nil //nolint:nilerr // it is the object's, and may change
	}
	return verdict{ready: result.Status == status.CurrentStatus, failed: result.Status == status.FailedStatus, reason: result.Message}, nil
}

// summary names a few of those that are not ready, the failed ones first.
func summary(verdicts []verdict) tool.Health {
	health := tool.Health{Ready: true}
	var failed, waiting []string
	for _, v := range verdicts {
		if v.ready {
			continue
		}
		health.Ready = false
		line := v.title + ": " + bounded(v.reason)
		if v.failed {
			health.Failed = true
			failed = append(failed, line)
		} else {
			waiting = append(waiting, line)
		}
	}
	slices.Sort(failed)
	slices.Sort(waiting)
	all := slices.Concat(failed, waiting)
	health.Message = strings.Join(all[:min(len(all), named)], "; ")
	if more := len(all) - named; more > 0 {
		health.Message += fmt.Sprintf("; and %d more", more)
	}
	return health
}

func bounded(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > manyReasons {
		return strings.ToValidUTF8(s[:manyReasons], "") + "…"
	}
	return s
}
