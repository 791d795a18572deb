package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
)

// followPackages starts to watch all packages. The revision of a release is the build of the
// installed bundle.
func followPackages(ctx context.Context, cfg *rest.Config, c client.Client) (*follower, error) {
	ctrllog.SetLogger(logr.Discard()) // avoids a warning
	all, err := cache.New(cfg, cache.Options{Scheme: c.Scheme(), Mapper: c.RESTMapper()})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	f := &follower{releases: map[string]seen{}, changed: make(chan struct{}, 1), stop: cancel}
	go func() { _ = all.Start(ctx) }()
	informer, err := all.GetInformer(ctx, &packagesv1.Package{})
	if err != nil {
		cancel()
		return nil, err
	}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{AddFunc: f.notePackage, UpdateFunc: func(_, o any) { f.notePackage(o) }})
	return f, err
}

func (f *follower) notePackage(o any) {
	p, ok := o.(*packagesv1.Package)
	if !ok {
		return
	}
	is := seen{ready: p.Status.State == packagesv1.StateInstalled}
	_, _ = fmt.Sscanf(p.Status.CurrentVersion, "1.0.%d", &is.revision) // an unreadable version means that nothing is installed
	f.mu.Lock()
	defer f.mu.Unlock()
	f.releases[p.Name] = is
	f.notify()
}

// awaitBuild waits until all packages of some clusters are installed from a build of the bundle.
func (w *packageWorld) awaitBuild(ctx context.Context, build int, clusters []string) error {
	var names []string
	for _, cluster := range clusters {
		for i := range w.herd.packages {
			names = append(names, w.pack(cluster, i).Name)
		}
	}
	return w.follower.await(ctx, fmt.Sprintf("packages of build %d on %d clusters", build, len(clusters)), func() bool {
		w.follower.mu.Lock()
		defer w.follower.mu.Unlock()
		for _, name := range names {
			if is := w.follower.releases[name]; !is.ready || is.revision != build {
				return false
			}
		}
		return true
	})
}

// firstAction returns when Helm starts an upgrade on a cluster, according to its record.
func (w *packageWorld) firstAction(ctx context.Context, cluster string) (<-chan time.Time, func(), error) {
	secrets := w.serverOf(cluster).Clientset(w.cleanups).CoreV1().Secrets(metav1.NamespaceAll)
	records, err := secrets.Watch(ctx, metav1.ListOptions{LabelSelector: "owner=helm,status=pending-upgrade"})
	if err != nil {
		return nil, nil, err
	}
	first := make(chan time.Time, 1)
	go func() {
		for e := range records.ResultChan() {
			object, ok := e.Object.(metav1.Object)
			if ok && e.Type == watch.Added && strings.HasPrefix(object.GetLabels()["name"], releasePrefix(cluster)) {
				first <- time.Now()
				return
			}
		}
	}()
	return first, records.Stop, nil
}
