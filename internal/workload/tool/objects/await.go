package objects

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"github.com/drover-dev/drover/internal/workload"
)

// establishTimeout is how long an API server may take to serve a new kind, which usually takes less
// than a second.
const establishTimeout = time.Minute

// Await watches an object until done returns true. done is called with nil once the object is gone.
func Await(ctx context.Context, client dynamic.ResourceInterface, name string, done func(*unstructured.Unstructured) (bool, error)) error {
	selector := fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()
	source := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.FieldSelector = selector
			return client.List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.FieldSelector = selector
			return client.Watch(ctx, o)
		},
	}
	var failure error
	missing := func(store cache.Store) (bool, error) {
		if len(store.List()) > 0 {
			return false, nil
		}
		ended, err := done(nil)
		failure = err
		return ended || err != nil, nil
	}
	_, err := watchtools.UntilWithSync(ctx, source, &unstructured.Unstructured{}, missing, func(e watch.Event) (bool, error) {
		u, ok := e.Object.(*unstructured.Unstructured)
		if !ok || e.Type == watch.Deleted {
			u = nil
		}
		return done(u)
	})
	if failure != nil {
		return failure
	}
	return err
}

// AwaitGone waits until an object is gone or replaced.
func AwaitGone(ctx context.Context, client dynamic.ResourceInterface, live *unstructured.Unstructured) error {
	return Await(ctx, client, live.GetName(), func(u *unstructured.Unstructured) (bool, error) {
		return u == nil || u.GetUID() != live.GetUID(), nil
	})
}

// AwaitEstablished waits until new kinds are served, and refreshes discovery.
func AwaitEstablished[T Item](ctx context.Context, cluster *workload.Cluster, crds []T) error {
	ctx, cancel := context.WithTimeout(ctx, establishTimeout)
	defer cancel()
	for _, crd := range crds {
		client := cluster.Dynamic().Resource(crd.Located())
		live, err := client.Get(ctx, crd.GetName(), metav1.GetOptions{})
		if err == nil && established(live) {
			continue
		}
		if err == nil {
			err = Await(ctx, client, crd.GetName(), func(u *unstructured.Unstructured) (bool, error) {
				return u != nil && established(u), nil
			})
		}
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("waiting for %s to be served: %w", crd.Title(), err)
		}
	}
	if mapper, ok := cluster.Mapper().(meta.ResettableRESTMapper); ok {
		mapper.Reset()
	}
	return nil
}

func established(crd *unstructured.Unstructured) bool { return Condition(crd, "Established") == "True" }

// Condition returns the status of a condition, or an empty string if it isn't set.
func Condition(u *unstructured.Unstructured, kind string) string {
	conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, c := range conditions {
		if c, ok := c.(map[string]any); ok && c["type"] == kind {
			status, _ := c["status"].(string)
			return status
		}
	}
	return ""
}
