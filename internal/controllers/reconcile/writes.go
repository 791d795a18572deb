package reconcile

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// Reconcilers decide by their cache what is missing: one that does not see the Machine it just
// created creates another. So every write is tracked from the answer of the API server, or from the
// lack of one, until all informers of its kind have seen it:
//
//	reconcile ──▶ client ──▶ transport ──▶ API server
//	    ▲                        │ answer: note the write for this request
//	    │                        │ none:   note what is there instead (found.go, lost.go)
//	  queue ◀── seen by all? ◀── ledger ◀── informers
//
// The transport sits below every client of the manager, because upstream makes some of its own.

// tracker knows the informers of a manager and the writes that go through its clients.
type tracker struct {
	scheme *runtime.Scheme
	// http asks what a lost write has done, until stopped is closed.
	http    *http.Client
	stopped chan struct{}

	mu        sync.RWMutex
	informers map[schema.GroupResource][]toolscache.SharedIndexInformer
	// forms tells apart informers that keep the same objects in different forms.
	forms map[toolscache.SharedIndexInformer]reflect.Type
}

func newTracker(scheme *runtime.Scheme) *tracker {
	return &tracker{
		scheme: scheme, stopped: make(chan struct{}), informers: map[schema.GroupResource][]toolscache.SharedIndexInformer{},
		forms: map[toolscache.SharedIndexInformer]reflect.Type{},
	}
}

// tracked reports whether writes to a group are tracked: those of Cluster API, of its providers and
// of Drover. What is in other groups has names that are known in advance, and is not counted.
func tracked(group string) bool {
	return strings.HasSuffix(group, ".x-k8s.io") || group == "x-k8s.io" ||
		strings.HasSuffix(group, "eks.amazonaws.com") || strings.HasSuffix(group, "drover.dev")
}

// newInformer makes an informer as the cache does by itself, and remembers it.
func (t *tracker) newInformer(lw toolscache.ListerWatcher, example runtime.Object, resync time.Duration, indexers toolscache.Indexers) toolscache.SharedIndexInformer {
	informer := toolscache.NewSharedIndexInformer(lw, example, resync, indexers)
	kind, err := apiutil.GVKForObject(example, t.scheme)
	if err != nil || !tracked(kind.Group) {
		return informer
	}
	plural, _ := meta.UnsafeGuessKindToResource(kind)
	t.mu.Lock()
	defer t.mu.Unlock()
	running := slices.DeleteFunc(t.informers[plural.GroupResource()], toolscache.SharedIndexInformer.IsStopped)
	maps.DeleteFunc(t.forms, func(informer toolscache.SharedIndexInformer, _ reflect.Type) bool { return informer.IsStopped() })
	t.informers[plural.GroupResource()] = append(running, informer)
	t.forms[informer] = reflect.TypeOf(example)
	return informer
}

// of returns the informers of a resource: its objects may be cached whole, without a type, and as
// metadata.
func (t *tracker) of(resource schema.GroupResource) []toolscache.SharedIndexInformer {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return slices.Clone(t.informers[resource])
}

// groups returns the informers of a resource by form: there is one for each namespace if a cache is
// limited to several.
func (t *tracker) groups(resource schema.GroupResource) map[reflect.Type][]toolscache.SharedIndexInformer {
	t.mu.RLock()
	defer t.mu.RUnlock()
	out := map[reflect.Type][]toolscache.SharedIndexInformer{}
	for _, informer := range t.informers[resource] {
		form := t.forms[informer]
		out[form] = append(out[form], informer)
	}
	return out
}

// transport notes what reconciles write.
func (t *tracker) transport(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		from, at, ok := t.attribute(r)
		if !ok {
			return next.RoundTrip(r)
		}
		sent, creates := t.creation(r, at)
		resp, body, err := receive(next.RoundTrip(r))
		if err != nil || resp.StatusCode >= http.StatusInternalServerError {
			var found []byte
			if creates {
				found, creates = t.find(r, at, sent)
			}
			if !creates {
				t.lost(r, from, at)
				return resp, err
			}
			resp, body, err = createdAnswer(r, found), found, nil
		}
		if resp.StatusCode < http.StatusMultipleChoices {
			if w, ok := at.written(body); ok {
				from.ledger.note(from.request, w)
			}
		}
		return resp, err
	})
}

// receive reads a whole answer, so that one that breaks off counts as lost.
func receive(resp *http.Response, err error) (*http.Response, []byte, error) {
	if err != nil {
		return nil, nil, err
	}
	body, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if err != nil {
		return nil, nil, err
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return resp, body, nil
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// attribute finds the reconcile that makes a request and the object it changes. There is nothing to
// track for a kind that is not cached.
func (t *tracker) attribute(r *http.Request) (origin, place, bool) {
	at, ok := target(r)
	if !ok || len(t.of(at.resource)) == 0 {
		return origin{}, place{}, false
	}
	from, ok := originOf(r.Context())
	return from, at, ok
}

// place is the object that a request is about.
type place struct {
	resource        schema.GroupResource
	namespace, name string
	// list is the path of all objects of the resource in the namespace.
	list string
}

// target returns the place of a request that changes an object of a tracked group:
//
//	/apis/<group>/<version>/[namespaces/<namespace>/]<resource>[/<name>[/<subresource>]]
func target(r *http.Request) (place, bool) {
	if r.Method == http.MethodGet || r.Method == http.MethodHead || r.URL.Query().Has("dryRun") {
		return place{}, false
	}
	prefix, path, ok := strings.Cut(r.URL.Path, "/apis/")
	parts := strings.Split(path, "/")
	if !ok || len(parts) < 3 || !tracked(parts[0]) {
		return place{}, false
	}
	p := place{resource: schema.GroupResource{Group: parts[0]}}
	rest := parts[2:]
	if rest[0] == "namespaces" && len(rest) > 2 {
		p.namespace, rest = rest[1], rest[2:]
	}
	p.resource.Resource = rest[0]
	if len(rest) > 1 {
		p.name = rest[1]
	}
	p.list = prefix + "/apis/" + strings.Join(parts[:len(parts)-len(rest)+1], "/")
	return p, true
}

// key is how informers call an object.
func (p place) key(name string) string {
	if p.namespace == "" {
		return name
	}
	return p.namespace + "/" + name
}

// written reads an answer, which is the object, or a Status about one that is gone.
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
		return write{resource: p.resource, key: p.key(p.name), uid: answer.Details.UID}, true
	case answer.Metadata.Name != "" && answer.Metadata.ResourceVersion != "":
		return write{resource: p.resource, key: p.key(answer.Metadata.Name), version: answer.Metadata.ResourceVersion}, true
	}
	return write{}, false // a collection, which no reconciler writes
}
