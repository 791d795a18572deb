package capi

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

const (
	// cachePatience is how long a write waits for the cache at most. What is never seen, such as an object that others remove at once, must hold
	// nobody up for long.
	cachePatience = time.Second
	// firstLook and lastLook are how long it waits between looks at the cache, twice as long each time. The cache is mostly milliseconds
	// behind.
	firstLook, lastLook = time.Millisecond, 16 * time.Millisecond
)

// consistent are the groups in whose objects reconcilers count what they have made.
var consistent = []string{
	clusterv1.GroupVersion.Group, bootstrapv1.GroupVersion.Group, controlplanev1.GroupVersion.Group, "infrastructure." + clusterv1.GroupVersion.Group,
}

// NewManager makes a manager whose cache is never older than the last write of the one who reads it. Reconcilers decide by their cache what
// is missing: one that does not see the Machine it has just made makes another.
func NewManager(cfg *rest.Config, o ctrl.Options) (ctrl.Manager, error) {
	writes := &ownWrites{scheme: o.Scheme, informers: map[schema.GroupResource][]toolscache.SharedIndexInformer{}}
	cfg = rest.CopyConfig(cfg)
	cfg.Wrap(writes.transport)
	o.Cache.NewInformer = writes.newInformer
	return ctrl.NewManager(cfg, o)
}

// ownWrites has a request that changes an object answered once all informers of its kind know the change. It sits below every client of a
// manager, as upstream has more than one.
type ownWrites struct {
	scheme *runtime.Scheme

	mu        sync.RWMutex
	informers map[schema.GroupResource][]toolscache.SharedIndexInformer
}

// newInformer makes an informer as the cache does by itself, and remembers it.
func (o *ownWrites) newInformer(lw toolscache.ListerWatcher, example runtime.Object, resync time.Duration, indexers toolscache.Indexers) toolscache.SharedIndexInformer {
	informer := toolscache.NewSharedIndexInformer(lw, example, resync, indexers)
	kind, err := apiutil.GVKForObject(example, o.scheme)
	if err != nil || !slices.Contains(consistent, kind.Group) {
		return informer
	}
	plural, _ := meta.UnsafeGuessKindToResource(kind)
	o.mu.Lock()
	defer o.mu.Unlock()
	known := slices.DeleteFunc(o.informers[plural.GroupResource()], toolscache.SharedIndexInformer.IsStopped)
	o.informers[plural.GroupResource()] = append(known, informer)
	return informer
}

// of are the informers of a resource: its objects may be cached whole, without a type, and as metadata.
func (o *ownWrites) of(resource schema.GroupResource) []toolscache.SharedIndexInformer {
	o.mu.RLock()
	defer o.mu.RUnlock()
	return slices.Clone(o.informers[resource])
}

func (o *ownWrites) transport(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		resp, err := next.RoundTrip(r)
		if err != nil || resp.StatusCode >= http.StatusMultipleChoices || r.URL.Query().Has("dryRun") {
			return resp, err
		}
		at, ok := target(r)
		if !ok {
			return resp, nil
		}
		informers := o.of(at.resource)
		if len(informers) == 0 {
			return resp, nil
		}
		body, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil {
			return nil, err
		}
		resp.Body = io.NopCloser(bytes.NewReader(body))
		if w, ok := at.written(body); ok {
			w.await(r.Context(), informers)
		}
		return resp, nil
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// place is what a request is about.
type place struct {
	resource        schema.GroupResource
	namespace, name string
}

// target is the place of a request that changes an object of one of the groups:
//
//	/apis/<group>/<version>/namespaces/<namespace>/<resource>[/<name>[/<subresource>]]
func target(r *http.Request) (place, bool) {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return place{}, false
	}
	_, path, ok := strings.Cut(r.URL.Path, "/apis/")
	parts := strings.Split(path, "/")
	if !ok || len(parts) < 5 || parts[2] != "namespaces" || !slices.Contains(consistent, parts[0]) {
		return place{}, false
	}
	p := place{resource: schema.GroupResource{Group: parts[0], Resource: parts[4]}, namespace: parts[3]}
	if len(parts) > 5 {
		p.name = parts[5]
	}
	return p, true
}

// write is a change as it was answered.
type write struct {
	key string
	// version is what the object has become; empty if it is gone.
	version string
	uid     types.UID
}

// written reads an answer, which is the object, or what the server says of one that is gone.
func (p place) written(body []byte) (write, bool) {
	var answer struct {
		Kind     string `json:"kind"`
		Metadata struct {
			Name            string    `json:"name"`
			UID             types.UID `json:"uid"`
			ResourceVersion string    `json:"resourceVersion"`
		} `json:"metadata"`
		Details struct {
			UID types.UID `json:"uid"`
		} `json:"details"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return write{}, false
	}
	switch {
	case answer.Kind == "Status" && p.name != "":
		return write{key: p.namespace + "/" + p.name, uid: answer.Details.UID}, true
	case answer.Metadata.Name != "" && answer.Metadata.ResourceVersion != "":
		return write{key: p.namespace + "/" + answer.Metadata.Name, version: answer.Metadata.ResourceVersion, uid: answer.Metadata.UID}, true
	}
	return write{}, false // Many at once, which no reconciler does.
}

// await returns when all informers know, or cachePatience has an end.
func (w write) await(ctx context.Context, informers []toolscache.SharedIndexInformer) {
	ctx, cancel := context.WithTimeout(ctx, cachePatience)
	defer cancel()
	look := firstLook
	for _, informer := range informers {
		for !w.known(informer) {
			select {
			case <-ctx.Done():
				return
			case <-time.After(look):
				look = min(2*look, lastLook)
			}
		}
	}
}

// known says that an informer has seen the change, or has no part in it.
func (w write) known(informer toolscache.SharedIndexInformer) bool {
	if informer.IsStopped() || !informer.HasSynced() {
		return true
	}
	found, exists, err := informer.GetStore().GetByKey(w.key)
	if err != nil {
		return true
	}
	if !exists {
		return w.version == "" || reached(informer.GetStore().LastStoreSyncResourceVersion(), w.version)
	}
	object, err := meta.Accessor(found)
	if err != nil {
		return true
	}
	if w.version == "" {
		return object.GetUID() != w.uid
	}
	return object.GetUID() == w.uid && reached(object.GetResourceVersion(), w.version)
}

// reached says that a version is at least the one wanted. Versions that don't compare say nothing, so that nobody waits for them.
func reached(version, wanted string) bool {
	if version == "" {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(version, wanted)
	return err != nil || order >= 0
}
