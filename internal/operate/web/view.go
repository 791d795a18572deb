package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	toolscache "k8s.io/client-go/tools/cache"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/operate/inspect"
)

const (
	// gathering is how long changes are gathered, so that a burst renders once.
	gathering = 100 * time.Millisecond
	// reconnect is the delay before a plane that can't be reached is tried again.
	reconnect = 2 * time.Second
)

// Kinds of clusters in a Key.
const (
	drover = "drover" // a Cluster of Drover
	capi   = "capi"   // a Cluster of Cluster API that Drover doesn't describe
)

// Key identifies a cluster.
type Key struct{ Kind, Namespace, Name string }

// String is the ID of the cluster in the page and in its addresses.
func (k Key) String() string { return k.Kind + "/" + k.Namespace + "/" + k.Name }

// View is what one user sees of a management plane. It starts empty; Run fills it and keeps it up
// to date.
type View struct {
	plane *inspect.Plane
	hub   *hub
	now   func() time.Time

	stores map[string]*store
	synced chan struct{}

	mu      sync.Mutex
	problem string
	dirty   map[Key]struct{}
	topics  map[string]struct{}
	recheck map[Key]time.Time
	wake    chan struct{}
}

// NewView returns the view of the user whose privileges the plane's client has.
func NewView(plane *inspect.Plane) *View {
	v := &View{
		plane: plane, hub: newHub(), now: time.Now, stores: map[string]*store{}, synced: make(chan struct{}),
		dirty: map[Key]struct{}{}, topics: map[string]struct{}{}, recheck: map[Key]time.Time{}, wake: make(chan struct{}, 1),
	}
	for _, k := range kinds() {
		v.stores[k.name] = &store{kind: k, parts: map[string]*part{}}
	}
	return v
}

// Run watches the plane until ctx ends.
func (v *View) Run(ctx context.Context) {
	for ctx.Err() == nil {
		err := v.watch(ctx)
		if err == nil {
			break
		}
		v.report(err)
		select {
		case <-ctx.Done():
		case <-time.After(reconnect):
		}
	}
	v.refresh()
	close(v.synced)
	for {
		select {
		case <-ctx.Done():
			return
		case <-v.wake:
		case <-time.After(v.nextCheck()):
		}
		select { // gather what changes together
		case <-ctx.Done():
			return
		case <-time.After(gathering):
		}
		v.refresh()
	}
}

// watch starts the informers of everything that the user may read, and waits until they are filled.
func (v *View) watch(ctx context.Context) error {
	namespaces := slices.Compact(slices.DeleteFunc([]string{v.plane.Own, anywherev1.SystemNamespace}, func(n string) bool { return n == "" }))
	found := make(map[string][]string, len(v.stores))
	var mu sync.Mutex
	group, probing := errgroup.WithContext(ctx)
	for _, s := range v.stores {
		group.Go(func() error {
			all, err := readable(probing, v.plane.Client, s.kind, namespaces)
			mu.Lock()
			defer mu.Unlock()
			found[s.kind.name] = all
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return fmt.Errorf("reading the management plane %s: %w", v.plane.Host, err)
	}
	if !slices.ContainsFunc(slices.Collect(maps.Values(found)), func(all []string) bool { return len(all) > 0 }) {
		return fmt.Errorf("%s is not a Drover management plane, or you may not list clusters there: ask for the role drover-viewer, or name your namespace with --namespace", v.plane.Host)
	}
	var filled []toolscache.InformerSynced
	for name, namespaces := range found {
		for _, namespace := range namespaces {
			filled = append(filled, v.start(ctx, v.stores[name], namespace))
		}
	}
	if !toolscache.WaitForCacheSync(ctx.Done(), filled...) {
		return ctx.Err()
	}
	v.report(nil)
	return nil
}

// start starts an informer. It returns whether the informer is filled.
func (v *View) start(ctx context.Context, s *store, namespace string) toolscache.InformerSynced {
	informer := newInformer(v.plane.Client, s.kind, namespace, func() { v.reached(s, namespace) })
	changed := func(o any) { v.changed(s.kind, o) }
	registered, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: changed, DeleteFunc: changed, UpdateFunc: func(_, o any) { changed(o) },
	})
	if err != nil {
		panic(err) // it is not stopped
	}
	_ = informer.SetWatchErrorHandlerWithContext(func(ctx context.Context, _ *toolscache.Reflector, err error) {
		switch {
		case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
			v.denied(s, namespace, err)
		case !apierrors.IsResourceExpired(err) && ctx.Err() == nil:
			v.report(fmt.Errorf("watching %s: %w", s.kind.name, err))
		}
	}) // it is not started yet
	s.add(namespace, informer)
	go informer.RunWithContext(ctx)
	return registered.HasSynced
}

// reached shows what the plane allows the user to read again.
func (v *View) reached(s *store, namespace string) {
	v.report(nil)
	for _, o := range s.allow(namespace) {
		v.changed(s.kind, o)
	}
}

// denied removes objects that the user may not read anymore. If the plane doesn't accept the
// credentials of the user anymore, it says so.
func (v *View) denied(s *store, namespace string, err error) {
	gone, lasts := s.deny(namespace, v.now())
	for _, o := range gone {
		v.changed(s.kind, o)
	}
	if lasts && apierrors.IsUnauthorized(err) {
		v.hub.tell("expired", []byte(`{}`))
	}
}

// report keeps why the plane can't be read, or that it can.
func (v *View) report(err error) {
	text := ""
	if err != nil && !errors.Is(err, context.Canceled) {
		text = err.Error()
	}
	v.mu.Lock()
	same := v.problem == text
	v.problem = text
	v.mu.Unlock()
	if !same {
		data, _ := json.Marshal(text) // a string
		v.hub.tell("problem", data)
	}
}

func (v *View) trouble() string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.problem
}

// changed marks the rows and topics that an object is part of.
func (v *View) changed(k kind, o any) {
	if tombstone, ok := o.(toolscache.DeletedFinalStateUnknown); ok {
		o = tombstone.Obj
	}
	object, ok := o.(client.Object)
	if !ok {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, topic := range topicsOf(k, object) {
		v.topics[topic] = struct{}{}
	}
	for _, key := range v.rowsOf(k, object) {
		v.dirty[key] = struct{}{}
	}
	select {
	case v.wake <- struct{}{}:
	default:
	}
}

// topicsOf returns the topics that an object is part of.
func topicsOf(k kind, o client.Object) []string {
	switch k.name {
	case kindClusters:
		if c, ok := o.(*anywherev1.Cluster); ok && c.Spec.GitOpsRef != nil {
			return []string{topicGit}
		}
	case kindFluxConfigs, kindGitChanges, kindApplied:
		return []string{topicGit}
	case kindAddOns, kindReleases:
		return []string{kindAddOns}
	case kindPackages:
		return []string{kindPackages}
	case kindMachines, kindDevices:
		return []string{kindMachines}
	}
	return nil
}

// rowsOf returns the keys of the rows that an object is part of.
func (v *View) rowsOf(k kind, o client.Object) []Key {
	name, namespace := k.cluster(o), o.GetNamespace()
	switch k.name {
	case kindClusters:
		return []Key{{drover, namespace, name}, {capi, anywherev1.SystemNamespace, name}}
	case kindFluxConfigs:
		return v.rowsInGit(o)
	case kindPackages:
		return []Key{{Name: name}}
	case kindAddOns:
		return nil
	}
	if name == "" {
		return nil
	}
	switch k.name {
	case kindGitChanges, kindApplied:
		return []Key{{drover, namespace, name}}
	case kindReleases:
		if o.GetLabels()[packagesv1.PackageLabel] != "" {
			return []Key{{Name: name}, {Namespace: namespace, Name: name}}
		}
	}
	return []Key{{Namespace: namespace, Name: name}}
}

// rowsInGit returns the keys of the clusters whose specs are in the repository of a FluxConfig.
func (v *View) rowsInGit(config client.Object) []Key {
	var out []Key
	for _, c := range list[*anywherev1.Cluster](v.stores[kindClusters]) {
		if ref := c.Spec.GitOpsRef; c.Namespace == config.GetNamespace() && ref != nil && ref.Name == config.GetName() {
			out = append(out, Key{drover, c.Namespace, c.Name})
		}
	}
	return out
}

// refresh computes the rows that may have changed.
func (v *View) refresh() {
	now := v.now()
	v.mu.Lock()
	dirty, topics := v.dirty, v.topics
	v.dirty, v.topics = map[Key]struct{}{}, map[string]struct{}{}
	for key, at := range v.recheck {
		if !at.After(now) {
			dirty[key] = struct{}{}
		}
	}
	v.mu.Unlock()
	resolved := map[Key]struct{}{}
	for key := range dirty {
		for _, one := range v.resolve(key) {
			resolved[one] = struct{}{}
		}
	}
	for key := range resolved {
		v.update(key, now)
	}
	for topic := range topics {
		data, _ := json.Marshal(topic) // a string
		v.hub.tell("topic", data)
	}
}

// resolve returns the clusters that a key without a kind may stand for. The objects of Drover's
// clusters are in one namespace, and their names are unique.
func (v *View) resolve(key Key) []Key {
	if key.Kind != "" {
		return []Key{key}
	}
	var out []Key
	if key.Namespace == "" || key.Namespace == anywherev1.SystemNamespace {
		for _, c := range of[*anywherev1.Cluster](v.stores[kindClusters], "", key.Name) {
			out = append(out, Key{drover, c.Namespace, c.Name})
		}
	}
	for _, c := range of[*clusterv1.Cluster](v.stores[kindCAPI], key.Namespace, key.Name) {
		out = append(out, Key{capi, c.Namespace, c.Name})
	}
	return append(out, Key{capi, key.Namespace, key.Name})
}

// update computes a row, or removes it.
func (v *View) update(key Key, now time.Time) {
	row, until := v.row(key, now)
	v.mu.Lock()
	delete(v.recheck, key)
	if !until.IsZero() {
		v.recheck[key] = until
	}
	v.mu.Unlock()
	if row == nil {
		v.hub.drop(key.String())
		return
	}
	data, err := json.Marshal(row)
	if err != nil {
		panic(err) // a row is plain data
	}
	v.hub.put(key.String(), data)
}

// nextCheck returns when a row changes although no object does.
func (v *View) nextCheck() time.Duration {
	v.mu.Lock()
	defer v.mu.Unlock()
	next := time.Hour
	for _, at := range v.recheck {
		next = min(next, max(0, at.Sub(v.now())))
	}
	return next
}

// cluster returns the tree of a cluster from the caches, and the Cluster of Drover or of Cluster
// API at its root. They are nil if there is none.
func (v *View) cluster(key Key) (*anywherev1.Cluster, *clusterv1.Cluster, *inspect.Objects) {
	described := of[*anywherev1.Cluster](v.stores[kindClusters], "", key.Name)
	if key.Kind == drover {
		i := slices.IndexFunc(described, func(c *anywherev1.Cluster) bool { return c.Namespace == key.Namespace })
		if i < 0 {
			return nil, nil, nil
		}
		return described[i], nil, v.objects(anywherev1.SystemNamespace, key.Name)
	}
	if key.Namespace == anywherev1.SystemNamespace && len(described) > 0 {
		return nil, nil, nil // the row of Drover's Cluster stands for it
	}
	for _, c := range of[*clusterv1.Cluster](v.stores[kindCAPI], key.Namespace, key.Name) {
		return nil, c, v.objects(key.Namespace, key.Name)
	}
	return nil, nil, nil
}
