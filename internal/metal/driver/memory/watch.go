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

// deletions records the version of the last deletion in each cluster. The backend keeps no history:
// a watch that resumes from an earlier version would never report the deletion, so it must be
// rejected, as an API server rejects versions that are too old.
type deletions struct {
	mu   sync.Mutex
	last map[string]uint64 // by group
}

// watchDeletions subscribes to all kinds of the backend.
func (c *clusters) watchDeletions() error {
	for gvk := range c.backend.GetScheme().AllKnownTypes() {
		obj, err := c.backend.GetScheme().New(gvk)
		if err != nil {
			return fmt.Errorf("creating a %s: %w", gvk, err)
		}
		if _, ok := obj.(client.Object); !ok {
			continue // a list, or options
		}
		informer, err := c.backend.GetCache().GetInformerForKind(context.Background(), gvk)
		if err != nil {
			return fmt.Errorf("watching %s: %w", gvk, err)
		}
		if err := informer.AddEventHandler(&c.deletions); err != nil {
			return fmt.Errorf("watching %s: %w", gvk, err)
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

// OnDelete is called before the deletion is visible.
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

// resumed returns the version that a watch resumes from. A watch that starts with a list has none.
func resumed(r *http.Request) (uint64, bool) {
	q := r.URL.Query()
	version, err := strconv.ParseUint(q.Get("resourceVersion"), 10, 64)
	return version, q.Get("watch") == "true" && err == nil && version > 0
}

// fromTheStart returns a request for a watch that starts with a list. Its version only limits the
// age of the list, which is irrelevant here; the backend would omit unchanged objects, and a client
// treats omitted objects as deleted.
func fromTheStart(r *http.Request) *http.Request {
	r = r.Clone(r.Context())
	q := r.URL.Query()
	q.Del("resourceVersion")
	r.URL.RawQuery = q.Encode()
	return r
}

// serveAPI forwards a request to the backend.
func (c *clusters) serveAPI(w http.ResponseWriter, r *http.Request) {
	address := localAddress(r)
	group, err := c.groupAt(address)
	if err != nil {
		writeStatus(w, http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable)
		return
	}
	// The backend forwards ports to the host of a request, and keeps counters by host.
	r.Host = group
	if strings.HasSuffix(r.URL.Path, "/portforward") {
		r.Host = address
		if overWebSocket(r) {
			unwrapSocket(c.api).ServeHTTP(w, r)
			return
		}
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

// forgotten reports whether a deletion since the version may be lost: by a recorded deletion, or
// because the version is from an earlier process.
func (c *clusters) forgotten(group string, version uint64) bool {
	text, err := c.backend.GetCache().GetBookmarkResourceVersion(group)
	if err != nil {
		return true
	}
	now, err := strconv.ParseUint(text, 10, 64)
	return err != nil || version > now || c.deletions.since(group, version)
}

// resumption is the response to a watch that resumes. The backend subscribes to events before it
// writes the header, so every earlier deletion is known by then, and every later one is an event.
type resumption struct {
	http.ResponseWriter
	end     context.CancelFunc
	expired func() bool
	begun   bool
	over    bool
}

// WriteHeader rejects the watch if its version is too old. The backend calls it again with every
// event.
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

// Write drops the output of a rejected watch.
func (w *resumption) Write(data []byte) (int, error) {
	if w.over {
		return len(data), nil
	}
	return w.ResponseWriter.Write(data)
}

// Flush flushes the response.
func (w *resumption) Flush() {
	if f, ok := w.ResponseWriter.(http.Flusher); ok {
		f.Flush()
	}
}
