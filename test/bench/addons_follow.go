package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
)

// follower tracks the releases of a plane with one watch. Listing them repeatedly would cost the
// plane as much as the measured operation.
type follower struct {
	mu       sync.Mutex
	releases map[string]seen
	// began is the start of the timeline, first and made when the first and the last release were
	// created, ready when the last became ready.
	began, first, made, ready time.Time
	changed                   chan struct{}
	stop                      context.CancelFunc
}

// seen is the tracked state of a release.
type seen struct {
	ready    bool
	revision int
}

// follow starts the watch.
func follow(ctx context.Context, cfg *rest.Config, c client.Client) (*follower, error) {
	ctrllog.SetLogger(logr.Discard()) // avoids a warning
	watch, err := cache.New(cfg, cache.Options{
		Scheme: c.Scheme(), Mapper: c.RESTMapper(), DefaultNamespaces: map[string]cache.Config{metav1.NamespaceDefault: {}},
	})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	f := &follower{releases: map[string]seen{}, changed: make(chan struct{}, 1), stop: cancel}
	go func() { _ = watch.Start(ctx) }()
	informer, err := watch.GetInformer(ctx, &addonsv1.HelmReleaseProxy{})
	if err != nil {
		cancel()
		return nil, err
	}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: f.note, UpdateFunc: func(_, obj any) { f.note(obj) }, DeleteFunc: f.gone,
	})
	return f, err
}

func (f *follower) note(obj any) {
	r, ok := obj.(*addonsv1.HelmReleaseProxy)
	if !ok {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now()
	if _, known := f.releases[r.Name]; !known {
		if f.first.IsZero() {
			f.first = now
		}
		f.made = now
	}
	is := seen{ready: r.Status.ObservedGeneration == r.Generation && conditions.IsTrue(r, clusterv1.ReadyCondition), revision: r.Status.Revision}
	if is.ready {
		f.ready = now
	}
	f.releases[r.Name] = is
	f.notify()
}

func (f *follower) gone(obj any) {
	if unknown, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
		obj = unknown.Obj
	}
	r, ok := obj.(*addonsv1.HelmReleaseProxy)
	if !ok {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.releases, r.Name)
	f.notify()
}

func (f *follower) notify() {
	select {
	case f.changed <- struct{}{}:
	default:
	}
}

// restart starts a new timeline.
func (f *follower) restart() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.began, f.first, f.made, f.ready = time.Now(), time.Time{}, time.Time{}, time.Time{}
}

// timeline describes when releases were created and became ready.
func (f *follower) timeline() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	after := func(t time.Time) float64 { return t.Sub(f.began).Seconds() }
	return fmt.Sprintf("first object after %.1f s, the last after %.1f s, the last one ready after %.1f s", after(f.first), after(f.made), after(f.ready))
}

// count returns the number of matching releases.
func (f *follower) count(so func(seen) bool) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, r := range f.releases {
		if so(r) {
			n++
		}
	}
	return n
}

// await waits for a number of matching releases.
func (f *follower) await(ctx context.Context, what string, enough func() bool) error {
	deadline := time.After(patience)
	for !enough() {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-deadline:
			return fmt.Errorf("timed out after %s waiting for: %s", patience, what)
		case <-f.changed:
		}
	}
	return nil
}
