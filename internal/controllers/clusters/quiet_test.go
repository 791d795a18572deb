package clusters_test

import (
	"time"

	"github.com/google/go-cmp/cmp"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
)

// stillness is how long an idle plane is checked for writes. Delayed effects of a change, such as
// the next health check of a machine, come before.
const stillness = 8 * time.Second

// quiet fails if any object of clusters is written while the plane is idle. The last writes of a
// change may still arrive first.
func (w *world) quiet() {
	w.Helper()
	w.until("all is quiet", func() error { return w.changedWithin(stillness, w.versions()) })
}

type differenceError string

func (e differenceError) Error() string { return string(e) }

func (w *world) changedWithin(d time.Duration, before map[string]string) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-w.Context().Done():
		return w.Context().Err()
	}
	if diff := cmp.Diff(before, w.versions()); diff != "" {
		return differenceError(diff)
	}
	return nil
}

func (w *world) versions() map[string]string {
	w.Helper()
	out := map[string]string{}
	for _, kind := range append(ownKinds, anywherev1.GroupVersion.WithKind("Cluster")) {
		for _, o := range w.list(kind, "", "") {
			out[kind.Kind+"/"+o.GetNamespace()+"/"+o.GetName()] = o.GetResourceVersion()
		}
	}
	return out
}
