package workload

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Watch selects the objects of a kind by label.
type Watch struct {
	Resource schema.GroupVersionResource
	Selector string
	// By is the label that Followed.Find looks objects up by.
	By string
}

// CRDs is watched on every cluster, because kinds come and go with CRDs.
var CRDs = Watch{Resource: schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}}

// Event reports that an object changed, or that a watch has synced.
type Event struct {
	Cluster  client.ObjectKey
	Resource schema.GroupVersionResource
	// Object has no spec and no status. It is nil if a watch has just synced.
	Object  *metav1.PartialObjectMetadata
	Deleted bool
	// StatusOnly reports that neither the spec nor the metadata changed.
	StatusOnly bool
}

func (e Event) isCRD() bool { return e.Resource == CRDs.Resource && e.Object != nil }

// watches are the watches of one cluster. They hold only metadata.
type watches struct {
	cluster client.ObjectKey
	client  metadata.Interface
	notify  func(Event)
	stop    context.Context
	close   context.CancelFunc

	mu       sync.Mutex
	followed map[Watch]*Followed
}

func newWatches(cluster client.ObjectKey, c metadata.Interface, notify func(Event)) *watches {
	w := &watches{cluster: cluster, client: c, notify: notify, followed: map[Watch]*Followed{}}
	w.stop, w.close = context.WithCancel(context.Background())
	return w
}

// Followed holds the objects of a watch.
type Followed struct {
	watch    Watch
	informer cache.SharedIndexInformer
	synced   cache.ResourceEventHandlerRegistration
}

// Follow returns the objects of a watch, which it starts on first use. It makes no request itself.
func (c *Cluster) Follow(watch Watch) *Followed {
	if watch != CRDs {
		c.watches.follow(CRDs)
	}
	return c.watches.follow(watch)
}

func (w *watches) follow(watch Watch) *Followed {
	w.mu.Lock()
	defer w.mu.Unlock()
	if f := w.followed[watch]; f != nil {
		return f
	}
	f := &Followed{watch: watch, informer: w.informer(watch)}
	f.synced, _ = f.informer.AddEventHandler(w.handler(watch.Resource)) // fails only for stopped informers
	w.followed[watch] = f
	go f.informer.Run(w.stop.Done())
	go func() {
		if cache.WaitForCacheSync(w.stop.Done(), f.synced.HasSynced) {
			w.notify(Event{Cluster: w.cluster, Resource: watch.Resource})
		}
	}()
	return f
}

const byLabel = "label"

func (w *watches) informer(watch Watch) cache.SharedIndexInformer {
	indexers := cache.Indexers{}
	if watch.By != "" {
		indexers[byLabel] = func(obj any) ([]string, error) {
			o, ok := obj.(*metav1.PartialObjectMetadata)
			if !ok {
				return nil, nil
			}
			return []string{o.Namespace + "/" + o.Labels[watch.By]}, nil
		}
	}
	informer := metadatainformer.NewFilteredMetadataInformer(w.client, watch.Resource, metav1.NamespaceAll, 0, indexers,
		func(o *metav1.ListOptions) { o.LabelSelector = watch.Selector }).Informer()
	_ = informer.SetTransform(trim)                                                                 // fails only for running informers
	_ = informer.SetWatchErrorHandlerWithContext(func(context.Context, *cache.Reflector, error) {}) // the breaker observes errors
	return informer
}

// trim drops all metadata that watches have no use for.
func trim(in any) (any, error) {
	o, ok := in.(*metav1.PartialObjectMetadata)
	if !ok {
		return in, nil
	}
	return &metav1.PartialObjectMetadata{TypeMeta: o.TypeMeta, ObjectMeta: metav1.ObjectMeta{
		Name: o.Name, Namespace: o.Namespace, UID: o.UID, ResourceVersion: o.ResourceVersion, Generation: o.Generation,
		Labels: o.Labels, Annotations: shorten(o.Annotations), DeletionTimestamp: o.DeletionTimestamp,
	}}, nil
}

// maxAnnotation is the longest annotation value that is kept.
const maxAnnotation = 64

// shorten replaces long values by digests, which save memory and still reveal changes.
func shorten(annotations map[string]string) map[string]string {
	for key, value := range annotations {
		if len(value) > maxAnnotation {
			sum := sha256.Sum256([]byte(value))
			annotations[key] = hex.EncodeToString(sum[:])
		}
	}
	return annotations
}

// statusOnly reports whether two versions of an object differ only in status. Kinds without a
// generation always differ in more.
func statusOnly(a, b *metav1.PartialObjectMetadata) bool {
	return b.Generation > 0 && a.Generation == b.Generation && maps.Equal(a.Labels, b.Labels) && maps.Equal(a.Annotations, b.Annotations)
}

func (w *watches) handler(resource schema.GroupVersionResource) cache.ResourceEventHandler {
	notify := func(obj any, e Event) {
		if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
			obj = gone.Obj
		}
		if o, ok := obj.(*metav1.PartialObjectMetadata); ok {
			e.Cluster, e.Resource, e.Object = w.cluster, resource, o
			w.notify(e)
		}
	}
	return cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(obj any, initial bool) {
			if !initial {
				notify(obj, Event{})
			}
		},
		UpdateFunc: func(old, obj any) {
			a, _ := old.(*metav1.PartialObjectMetadata)
			b, _ := obj.(*metav1.PartialObjectMetadata)
			notify(obj, Event{StatusOnly: a != nil && b != nil && statusOnly(a, b)})
		},
		DeleteFunc: func(obj any) { notify(obj, Event{Deleted: true}) },
	}
}

// Synced reports whether the initial list is complete. Until then, a missing object means nothing.
func (f *Followed) Synced() bool { return f.synced.HasSynced() }

// Find returns the objects in a namespace whose label By has a value. The caller must not modify
// them.
func (f *Followed) Find(namespace, value string) []*metav1.PartialObjectMetadata {
	found, err := f.informer.GetIndexer().ByIndex(byLabel, namespace+"/"+value)
	if err != nil {
		return nil // the watch has no By label
	}
	out := make([]*metav1.PartialObjectMetadata, 0, len(found))
	for _, o := range found {
		out = append(out, o.(*metav1.PartialObjectMetadata)) // see trim
	}
	return out
}

// All returns the objects. The caller must not modify them.
func (f *Followed) All() []*metav1.PartialObjectMetadata {
	found := f.informer.GetIndexer().List()
	out := make([]*metav1.PartialObjectMetadata, 0, len(found))
	for _, o := range found {
		out = append(out, o.(*metav1.PartialObjectMetadata)) // see trim
	}
	return out
}

// Get returns an object, or nil if it is unknown.
func (f *Followed) Get(namespace, name string) *metav1.PartialObjectMetadata {
	key := name
	if namespace != "" {
		key = namespace + "/" + name
	}
	obj, _, _ := f.informer.GetIndexer().GetByKey(key)
	o, _ := obj.(*metav1.PartialObjectMetadata)
	return o
}
