package memory

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	inmemory "sigs.k8s.io/cluster-api/test/infrastructure/inmemory/pkg/runtime/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// deletions remembers at which version an object of a cluster was deleted
// last. The backend keeps no history: a watch that resumes from before would
// never tell that the object is gone, so it has to be refused, as an API
// server does with versions that it no longer knows.
type deletions struct {
	mu   sync.Mutex
	last map[string]uint64 // by group
}

// watchDeletions listens to all kinds that the backend knows.
func (c *clusters) watchDeletions() error {
	for gvk := range c.backend.GetScheme().AllKnownTypes() {
		obj, err := c.backend.GetScheme().New(gvk)
		if err != nil {
			return fmt.Errorf("making a %s: %w", gvk, err)
		}
		if _, ok := obj.(client.Object); !ok {
			continue // a list, or options
		}
		informer, err := c.backend.GetCache().GetInformerForKind(context.Background(), gvk)
		if err != nil {
			return fmt.Errorf("listening to %s: %w", gvk, err)
		}
		if err := informer.AddEventHandler(&c.deletions); err != nil {
			return fmt.Errorf("listening to %s: %w", gvk, err)
		}
	}
	return nil
}

var _ inmemory.InformEventHandler = &deletions{}

// OnCreate does nothing.
func (*deletions) OnCreate(string, client.Object) {}

// OnUpdate does nothing.
func (*deletions) OnUpdate(string, client.Object, client.Object) {}

// OnGeneric does nothing.
func (*deletions) OnGeneric(string, client.Object) {}

// OnDelete is called before anybody can see that the object is gone.
func (d *deletions) OnDelete(group string, obj client.Object) {
	version, err := strconv.ParseUint(obj.GetResourceVersion(), 10, 64)
	if err != nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.last[group] = max(d.last[group], version)
}

func (d *deletions) since(group string, version uint64) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.last[group] > version
}

func (d *deletions) forget(group string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.last, group)
}

// resumed returns the version that a watch goes on from; a watch that begins
// with all there is has none.
func resumed(r *http.Request) (uint64, bool) {
	q := r.URL.Query()
	version, err := strconv.ParseUint(q.Get("resourceVersion"), 10, 64)
	return version, q.Get("watch") == "true" && err == nil && version > 0
}

// fromTheStart is a request for a watch that begins with all there is. Its
// version only says how old that may be, which is never a question here; the
// backend would leave out what did not change since, and a client takes what
// is left out for gone.
func fromTheStart(r *http.Request) *http.Request {
	r = r.Clone(r.Context())
	q := r.URL.Query()
	q.Del("resourceVersion")
	r.URL.RawQuery = q.Encode()
	return r
}

// serveAPI has the backend answer a request.
func (c *clusters) serveAPI(w http.ResponseWriter, r *http.Request) {
	address := localAddress(r)
	group, err := c.groupAt(address)
	if err != nil {
		writeStatus(w, http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable)
		return
	}
	// The backend forwards ports to the host of a request, and counts all
	// others by it.
	r.Host = group
	if strings.HasSuffix(r.URL.Path, "/portforward") {
		r.Host = address
	}
	if r.URL.Query().Get("sendInitialEvents") == "true" {
		r = fromTheStart(r)
	}
	if version, ok := resumed(r); ok {
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		r = r.WithContext(ctx)
		w = &resumption{ResponseWriter: w, end: cancel, expired: func() bool { return c.forgotten(group, version) }}
	}
	if r.Method == http.MethodPatch && strings.HasPrefix(r.Header.Get("Content-Type"), "application/apply-patch") {
		c.apply(w, r)
		return
	}
	c.api.ServeHTTP(w, r)
}

// forgotten tells whether something has been lost since a version: by a
// deletion, or because the version is one of a process before this one.
func (c *clusters) forgotten(group string, version uint64) bool {
	text, err := c.backend.GetCache().GetBookmarkResourceVersion(group)
	if err != nil {
		return true
	}
	now, err := strconv.ParseUint(text, 10, 64)
	return err != nil || version > now || c.deletions.since(group, version)
}

// resumption is the answer to a watch that resumes. The backend has begun to
// listen for events when it writes the header, so all that was deleted before
// is known by then, and all that is deleted later is an event.
type resumption struct {
	http.ResponseWriter
	end     context.CancelFunc
	expired func() bool
	begun   bool
	over    bool
}

// WriteHeader refuses the watch if it is too late for it. The backend calls it
// again with every event.
func (w *resumption) WriteHeader(code int) {
	if w.begun {
		return
	}
	w.begun = true
	if code == http.StatusOK && w.expired() {
		w.over = true
		w.Header().Del("Transfer-Encoding")
		writeStatus(w.ResponseWriter, http.StatusGone, metav1.StatusReasonExpired)
		w.end()
		return
	}
	w.ResponseWriter.WriteHeader(code)
}

// Write drops what belongs to a watch that was refused.
func (w *resumption) Write(data []byte) (int, error) {
	if w.over {
		return len(data), nil
	}
	return w.ResponseWriter.Write(data)
}

// Flush sends events on their way.
func (w *resumption) Flush() {
	if f, ok := w.ResponseWriter.(http.Flusher); ok {
		f.Flush()
	}
}
