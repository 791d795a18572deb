package reconcile

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus/testutil"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

var machines = schema.GroupResource{Group: clusterv1.GroupVersion.Group, Resource: "machines"}

// fakeInformer is synced, and contains what the test adds to its store.
type fakeInformer struct {
	toolscache.SharedIndexInformer

	stopped, unsynced bool
}

func (f *fakeInformer) HasSynced() bool { return !f.unsynced }
func (f *fakeInformer) IsStopped() bool { return f.stopped }

func (f *fakeInformer) knows(t *testing.T, name, version string, uid types.UID) {
	t.Helper()
	err := f.GetStore().Add(&clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, ResourceVersion: version, UID: uid}})
	if err != nil {
		t.Fatal(err)
	}
}

func newFakeInformer() *fakeInformer {
	return &fakeInformer{SharedIndexInformer: toolscache.NewSharedIndexInformer(nil, &clusterv1.Machine{}, 0, nil)}
}

// server replaces an API server.
type server func(*http.Request) (string, error)

func (s server) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := s(r)
	if err != nil {
		return nil, err
	}
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(body)), Header: http.Header{}, Request: r}, nil
}

// world is a guarded controller with one informer and a server.
type world struct {
	guard    *Guard
	informer *fakeInformer
	queue    Queue
	send     http.RoundTripper
}

func newWorld(t *testing.T, s server) *world {
	t.Helper()
	w := &world{informer: newFakeInformer()}
	tracker := newTracker(runtime.NewScheme())
	tracker.informers[machines] = []toolscache.SharedIndexInformer{w.informer}
	tracker.http = &http.Client{Transport: s}
	t.Cleanup(func() { close(tracker.stopped) })
	log := funcr.New(func(_, _ string) {}, funcr.Options{})
	w.guard = &Guard{name: t.Name(), log: log, tracker: tracker, writes: newLedger()}
	w.queue = w.guard.Queue(priorityqueue.New[ctrlreconcile.Request](t.Name()))
	t.Cleanup(w.queue.ShutDown)
	w.send = tracker.transport(s)
	return w
}

var one = ctrlreconcile.Request{NamespacedName: types.NamespacedName{Namespace: "ns", Name: "one"}}

// write sends a request from a reconcile of one.
func (w *world) write(t *testing.T, method, path string) error {
	t.Helper()
	log := w.guard.logger(&one).WithName("upstream").WithValues("derived", "logger")
	r, err := http.NewRequestWithContext(ctrl.LoggerInto(t.Context(), log), method, "https://server"+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := w.send.RoundTrip(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, err = io.ReadAll(resp.Body)
	return err
}

// next reports whether a request is handed out within a moment.
func (w *world) next(within time.Duration) bool {
	out := make(chan struct{})
	go func() {
		if item, shutdown := w.queue.Get(); !shutdown {
			w.queue.Done(item)
			close(out)
		}
	}()
	select {
	case <-out:
		return true
	case <-time.After(within):
		return false
	}
}

const created = `{"kind":"Machine","metadata":{"name":"m","uid":"u","resourceVersion":"10"}}`

const machinesPath = "/apis/cluster.x-k8s.io/v1beta2/namespaces/ns/machines"

func TestReconcileWaitsForItsOwnWrite(t *testing.T) {
	w := newWorld(t, func(*http.Request) (string, error) { return created, nil })
	if err := w.write(t, http.MethodPost, machinesPath); err != nil {
		t.Fatal(err)
	}
	w.queue.Add(one)
	out := make(chan ctrlreconcile.Request)
	go func() {
		item, _ := w.queue.Get()
		out <- item
	}()
	select {
	case <-out:
		t.Fatal("the request was handed out before the cache has the Machine")
	case <-time.After(10 * holdInterval):
	}
	w.informer.knows(t, "m", "9", "u")
	select {
	case <-out:
		t.Fatal("the request was handed out while the cache has an older version")
	case <-time.After(4 * holdInterval):
	}
	w.informer.knows(t, "m", "10", "u")
	select {
	case item := <-out:
		if item != one {
			t.Errorf("got %v", item)
		}
	case <-time.After(time.Minute):
		t.Fatal("never handed out")
	}
	if got := testutil.ToFloat64(heldBack.WithLabelValues(t.Name())); got != 1 {
		t.Errorf("the metric counts %v reconciles, want 1", got)
	}
}

func TestOtherObjectsDoNotWait(t *testing.T) {
	w := newWorld(t, func(*http.Request) (string, error) { return created, nil })
	if err := w.write(t, http.MethodPost, machinesPath); err != nil {
		t.Fatal(err)
	}
	w.queue.Add(ctrlreconcile.Request{NamespacedName: types.NamespacedName{Namespace: "ns", Name: "two"}})
	if !w.next(time.Minute) {
		t.Error("it was held back")
	}
}

func TestLostResponseCountsAsUnseen(t *testing.T) {
	var listed chan struct{}
	w := newWorld(t, func(r *http.Request) (string, error) {
		if r.Method == http.MethodPost {
			return "", errors.New("connection reset")
		}
		<-listed
		if r.URL.Path != machinesPath {
			return "", fmt.Errorf("listed %s", r.URL.Path)
		}
		return `{"kind":"PartialObjectMetadataList","metadata":{"resourceVersion":"20"},"items":[{"metadata":{"namespace":"ns","name":"m","uid":"u","resourceVersion":"10"}}]}`, nil
	})
	listed = make(chan struct{})
	w.informer.knows(t, "gone", "5", "g")
	w.informer.knows(t, "newer", "30", "n")
	if err := w.write(t, http.MethodPost, machinesPath); err == nil {
		t.Fatal("the error was swallowed")
	}
	seen := func() bool { return w.guard.writes.seen(one, w.guard.tracker) }
	if seen() {
		t.Fatal("the write counts as seen, want unseen: its outcome is unknown")
	}
	close(listed)
	eventually(t, func() bool {
		w.guard.writes.mu.Lock()
		defer w.guard.writes.mu.Unlock()
		return len(w.guard.writes.unseen[one]) == 2 // the existing Machine, and one that is only in the cache
	})
	if seen() {
		t.Fatal("the write counts as seen, want unseen: the cache lacks the Machine")
	}
	w.informer.knows(t, "m", "10", "u")
	if seen() {
		t.Fatal("the write counts as seen, want unseen: the cache has a deleted Machine")
	}
	if err := w.informer.GetStore().Delete(&clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "gone", ResourceVersion: "15"}}); err != nil {
		t.Fatal(err)
	}
	eventually(t, seen)
}

func eventually(t *testing.T, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("timed out")
		}
	}
}

func TestUnwatchedWritesAreIgnored(t *testing.T) {
	for name, tc := range map[string]struct {
		write   write
		prepare func(*fakeInformer)
		missing bool
	}{
		"an object that is not there yet":       {write{key: "ns/m", version: "7"}, func(*fakeInformer) {}, true},
		"an informer that has stopped":          {write{key: "ns/m", version: "7"}, func(f *fakeInformer) { f.stopped = true }, false},
		"an informer that is about to list":     {write{key: "ns/m", version: "7"}, func(f *fakeInformer) { f.unsynced = true }, false},
		"an older version":                      {write{key: "ns/m", version: "7"}, func(f *fakeInformer) { f.knows(t, "m", "6", "u") }, true},
		"the version":                           {write{key: "ns/m", version: "7"}, func(f *fakeInformer) { f.knows(t, "m", "7", "u") }, false},
		"a newer object of that name":           {write{key: "ns/m", version: "7"}, func(f *fakeInformer) { f.knows(t, "m", "8", "other") }, false},
		"versions that don't compare":           {write{key: "ns/m", version: "x"}, func(f *fakeInformer) { f.knows(t, "m", "y", "u") }, false},
		"a deletion that is not known yet":      {write{key: "ns/m", uid: "u"}, func(f *fakeInformer) { f.knows(t, "m", "7", "u") }, true},
		"a deletion of which nothing is left":   {write{key: "ns/m", uid: "u"}, func(*fakeInformer) {}, false},
		"a deletion, and a new one of the name": {write{key: "ns/m", uid: "u"}, func(f *fakeInformer) { f.knows(t, "m", "9", "other") }, false},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFakeInformer()
			tc.prepare(f)
			if got := tc.write.missing(f); got != tc.missing {
				t.Errorf("missing is %t, want %t", got, tc.missing)
			}
		})
	}
}

func TestOnlyTrackedGroupsAreRecorded(t *testing.T) {
	for request, want := range map[string]string{
		"POST " + machinesPath:                "machines.cluster.x-k8s.io ns/ " + machinesPath,
		"PATCH " + machinesPath + "/m/status": "machines.cluster.x-k8s.io ns/m " + machinesPath,
		"PUT /prefix/apis/infrastructure.cluster.x-k8s.io/v1beta1/namespaces/n/packetmachines/m": "packetmachines.infrastructure.cluster.x-k8s.io n/m " +
			"/prefix/apis/infrastructure.cluster.x-k8s.io/v1beta1/namespaces/n/packetmachines",
		"PATCH /apis/anywhere.eks.amazonaws.com/v1alpha1/namespaces/n/clusters/c": "clusters.anywhere.eks.amazonaws.com n/c " +
			"/apis/anywhere.eks.amazonaws.com/v1alpha1/namespaces/n/clusters",
		"POST /apis/addons.cluster.x-k8s.io/v1beta2/clusterthings": "clusterthings.addons.cluster.x-k8s.io / " +
			"/apis/addons.cluster.x-k8s.io/v1beta2/clusterthings",
		"GET " + machinesPath + "/m":                              "",
		"POST " + machinesPath + "?dryRun=All":                    "",
		"PUT /apis/coordination.k8s.io/v1/namespaces/n/leases/l":  "",
		"POST /api/v1/namespaces/n/secrets":                       "",
		"POST /apis/authorization.k8s.io/v1/subjectaccessreviews": "",
	} {
		method, address, _ := strings.Cut(request, " ")
		u, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if at, ok := target(&http.Request{Method: method, URL: u}); ok {
			got = at.resource.String() + " " + at.namespace + "/" + at.name + " " + at.list
		}
		if got != want {
			t.Errorf("%s is about %q, want %q", request, got, want)
		}
	}
}

func TestResponsesWithoutObjectsAreIgnored(t *testing.T) {
	at := place{namespace: "n"}
	for _, body := range []string{"", "{", `[]`, `{"kind":"MachineList","metadata":{"resourceVersion":"5"}}`, `{"kind":"Status"}`} {
		if w, ok := at.written([]byte(body)); ok {
			t.Errorf("%q is taken for %+v", body, w)
		}
	}
}

func TestWroteReportsOwnVersions(t *testing.T) {
	w := newWorld(t, func(*http.Request) (string, error) { return created, nil })
	if err := w.write(t, http.MethodPost, machinesPath); err != nil {
		t.Fatal(err)
	}
	at := func(version string) *clusterv1.Machine {
		return &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "m", ResourceVersion: version}}
	}
	if !w.guard.Wrote(at("10")) || w.guard.Wrote(at("11")) || w.guard.Wrote(at("")) {
		t.Error("only what was written is known")
	}
}

func TestGuardWithoutTrackerIsTransparent(t *testing.T) {
	g := &Guard{writes: newLedger()}
	below := priorityqueue.New[ctrlreconcile.Request](t.Name())
	t.Cleanup(below.ShutDown)
	if g.Queue(below) != below || g.Options(controller.Options{}).NewQueue != nil {
		t.Error("it does")
	}
}

// TestWritesAreSeenByTheInformerOfTheirNamespace has a cache of two namespaces, one of which never
// gets the object, and another cache that keeps only metadata.
func TestWritesAreSeenByTheInformerOfTheirNamespace(t *testing.T) {
	w := newWorld(t, func(*http.Request) (string, error) { return created, nil })
	elsewhere, metadata := newFakeInformer(), newFakeInformer()
	tracker := w.guard.tracker
	tracker.informers[machines] = append(tracker.informers[machines], elsewhere, metadata)
	tracker.forms[metadata] = reflect.TypeFor[*metav1.PartialObjectMetadata]()
	if err := w.write(t, http.MethodPost, machinesPath); err != nil {
		t.Fatal(err)
	}
	if w.guard.writes.seen(one, tracker) {
		t.Error("the write counts as seen, want unseen: no informer has it")
	}
	w.informer.knows(t, "m", "10", "u")
	if w.guard.writes.seen(one, tracker) {
		t.Error("the write counts as seen, want unseen: the metadata cache lacks it")
	}
	metadata.knows(t, "m", "10", "u")
	if !w.guard.writes.seen(one, tracker) {
		t.Error("the write counts as unseen, want seen: the informer of its namespace has it")
	}
}
