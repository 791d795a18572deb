package install

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/metrics"

	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
)

// writes are the requests of the controller that change objects.
type writes struct {
	mu   sync.Mutex
	made []string
}

func (w *writes) record(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		resp, err := next.RoundTrip(r)
		if err == nil && r.Method != http.MethodGet {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.made = append(w.made, strings.Join([]string{r.Method, r.URL.Path, resp.Status}, " "))
		}
		return resp, err
	})
}

// in returns the writes to objects of a namespace, without the address of the API group.
func (w *writes) in(namespace string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []string
	for _, made := range w.made {
		method, rest, _ := strings.Cut(made, " ")
		if _, object, ok := strings.Cut(rest, "/namespaces/"+namespace+"/"); ok {
			out = append(out, method+" "+object)
		}
	}
	return out
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// heldBack is how many reconciles of Packages waited for the cache so far.
func heldBack(t *testing.T) float64 {
	t.Helper()
	families, err := metrics.Registry.Gather()
	must(t, err)
	for _, family := range families {
		if family.GetName() != "drover_reconciles_held_back_total" {
			continue
		}
		for _, m := range family.GetMetric() {
			if len(m.GetLabel()) == 1 && m.GetLabel()[0].GetValue() == "Package" {
				return m.GetCounter().GetValue()
			}
		}
	}
	return 0
}

// The activation triggers a reconcile while the cache contains neither the finalizer of the Package
// nor its release. If the reconcile started then, it would write both again, which conflicts.
func TestReconcileWaitsUntilTheCacheHasSeenItsWrites(t *testing.T) {
	w := newWorld(t)
	w.bundle(1, pack("hello", "0.1.0"))
	w.bundle(2, pack("hello", "0.2.0"))
	w.controller(w.bundleName(1))
	before := heldBack(t)
	plane.watches.Set(2 * time.Second)
	t.Cleanup(func() { plane.watches.Set(0) })

	p := w.install("my", packagesv1.PackageSpec{PackageName: "hello", TargetNamespace: "x"})
	w.release(p, digest("hello0.1.0"))
	w.activate(w.bundleName(2)) // its event arrives at once
	w.finish(p, digest("hello0.2.0"))

	created := 0
	for _, write := range plane.writes.in(w.namespace) {
		if !strings.Contains(write, " 20") {
			t.Errorf("a write failed: %s", write)
		}
		if strings.HasPrefix(write, "POST helmreleaseproxies ") {
			created++
		}
	}
	if created != 1 {
		t.Errorf("the release was created %d times", created)
	}
	if heldBack(t) == before {
		t.Error("no reconcile was held back, so this test shows nothing")
	}
}
