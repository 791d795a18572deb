package packages_test

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httputil"
	"slices"
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/test/workloadtest"
)

// trap is a proxy in front of API servers that kills the writer after a write, before the response.
// It does so once per step, at the first step that it has not tried before.
type trap struct {
	*testing.T

	mu sync.Mutex
	// tried are the steps at which a writer was killed, and seen counts the steps since the trap
	// was set.
	tried map[string]bool
	seen  map[string]int
	// story and release identify the current operation, kill kills the writer (nil if the trap is
	// not set), and struck is the step at which it was killed.
	story, release, struck string
	kill                   func()
}

// set kills the writer at the next step that was not tried before.
func (t *trap) set(story, release string, kill func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.story, t.release, t.kill, t.struck, t.seen = story, release, kill, "", map[string]int{}
}

// sprung reports whether the writer was killed.
func (t *trap) sprung() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.struck != ""
}

// disarm returns the step at which the writer was killed, empty if it was not.
func (t *trap) disarm() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kill = nil
	return t.struck
}

var errStruck = errors.New("the writer is dead")

// answered runs after a server has handled a request.
func (t *trap) answered(r *http.Response) error {
	if !step(r.Request) {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.kill == nil || t.struck != "" {
		return nil
	}
	which := r.Request.Method + " " + strings.ReplaceAll(r.Request.URL.Path, t.release, "…")
	t.seen[which]++
	which = fmt.Sprintf("%s, %s, number %d", t.story, which, t.seen[which])
	if t.tried[which] {
		return nil
	}
	t.kill()
	t.tried[which], t.struck = true, which
	return errStruck
}

// step reports whether a request is part of an installation: writes to packages and releases on the
// management plane, and all writes to a cluster.
func step(r *http.Request) bool {
	if r.Method == http.MethodGet || strings.Contains(r.URL.Path, "/events") || strings.Contains(r.URL.Path, "/leases") {
		return false
	}
	return strings.Contains(r.URL.Path, "/packages/") || strings.Contains(r.URL.Path, "/helmreleaseproxies") ||
		strings.Contains(r.URL.Path, "/api/v1/") && !strings.Contains(r.URL.Path, packagesv1.KubeconfigNamespace)
}

// front returns a config that connects through the trap.
func (t *trap) front(to *rest.Config) *rest.Config {
	t.Helper()
	return workloadtest.Before(t.T, to, func(behind *httputil.ReverseProxy) http.Handler {
		behind.ModifyResponse = t.answered
		return behind
	})
}

// story is an operation on a package, with checks that must pass even if the manager was killed.
type story struct {
	name  string
	begin func(*packagesv1.Package)
	ended func(*packagesv1.Package) bool
	check func(*packagesv1.Package)
}

func TestManagerKilledAtAnyStepFinishesTheOperation(t *testing.T) {
	w := newWorld(t)
	trap := &trap{T: t, tried: map[string]bool{}}
	w.through = trap.front
	w.begin()
	defer w.clean()
	versions := []string{"1.0.0", "2.0.0"}
	bundles := make([]string, len(versions))
	for i, version := range versions { // the latest is kept as well
		bundles[i] = w.publish(i+1, pack("hello", version, w.chart("hello", version))).Name
	}
	w.use(0, bundles[0])
	w.until("both bundles are stored", func() bool { return w.isStored(bundles[0]) && w.isStored(bundles[1]) })

	active := 0
	installed := func(p *packagesv1.Package) bool { return w.isInstalled(p, versions[active]) }
	stories := []story{
		{"install", func(p *packagesv1.Package) { w.must(w.Create(t.Context(), p)) }, installed, w.hasOneRelease},
		{"upgrade", func(*packagesv1.Package) {
			active = 1 - active
			w.activate(0, bundles[active])
		}, installed, w.hasOneRelease},
		{"uninstall", func(p *packagesv1.Package) { w.must(w.Delete(t.Context(), p)) }, w.isGone, w.hasNothingLeft},
	}
	unharmed := map[string]bool{}
	for n := 1; len(unharmed) < len(stories) && !t.Failed(); n++ {
		release := fmt.Sprintf("my%03d", n)
		p := &packagesv1.Package{
			ObjectMeta: metav1.ObjectMeta{Namespace: packagesv1.Namespace, Name: w.clusters[0] + "-" + release},
			Spec:       packagesv1.PackageSpec{PackageName: "hello"},
		}
		for _, s := range stories {
			if unharmed[s.name] {
				w.run(s, p)
				continue
			}
			trap.set(s.name, release, w.manager.Kill)
			unharmed[s.name] = !w.interrupt(trap, s, p)
		}
		maps.DeleteFunc(unharmed, func(_ string, is bool) bool { return !is })
	}
	for _, which := range slices.Sorted(maps.Keys(trap.tried)) {
		t.Logf("killed after %s", which)
	}
}

func (w *world) run(s story, p *packagesv1.Package) {
	w.Helper()
	s.begin(p)
	w.until(s.name+" of "+p.Name, func() bool { return s.ended(p) })
	s.check(p)
}

// interrupt runs a story and restarts the manager if it is killed. It reports whether it was.
func (w *world) interrupt(trap *trap, s story, p *packagesv1.Package) bool {
	w.Helper()
	s.begin(p)
	w.until(s.name+" of "+p.Name+", or the manager is killed", func() bool { return trap.sprung() || s.ended(p) })
	fatal := trap.disarm()
	if fatal != "" {
		w.start()
		w.until(s.name+" of "+p.Name+" after "+fatal, func() bool { return s.ended(p) })
	}
	s.check(p)
	return fatal != ""
}

func (w *world) isStored(bundle string) bool {
	return w.Get(w.Context(), client.ObjectKey{Namespace: packagesv1.Namespace, Name: bundle}, &packagesv1.PackageBundle{}) == nil
}

func (w *world) isInstalled(p *packagesv1.Package, version string) bool {
	return w.Get(w.Context(), client.ObjectKeyFromObject(p), p) == nil && p.Status.State == packagesv1.StateInstalled &&
		p.Status.CurrentVersion == version && p.Status.ObservedGeneration == p.Generation
}

func (w *world) isGone(p *packagesv1.Package) bool {
	return apierrors.IsNotFound(w.Get(w.Context(), client.ObjectKeyFromObject(p), &packagesv1.Package{}))
}

// hasOneRelease checks that a Package has one deployed release and no leftovers.
func (w *world) hasOneRelease(p *packagesv1.Package) {
	w.Helper()
	release := p.Status.Target.Release
	deployed := 0
	for _, record := range w.records(0, release) {
		switch _, state, _ := strings.Cut(record, " "); state {
		case "deployed":
			deployed++
		case "superseded":
		default:
			w.Errorf("%s of %s still exists, want it deleted", record, release)
		}
	}
	if deployed != 1 {
		w.Errorf("%s is deployed %d times: %v", release, deployed, w.records(0, release))
	}
	if got, want := w.text(0, release), "hello "+p.Status.CurrentVersion+" images.example.com"; got != want {
		w.Errorf("the cluster has %q of %s, want %q", got, release, want)
	}
	if got := w.releases(); len(got) != 1 || got[0] != p.Name {
		w.Errorf("HelmReleaseProxies are %v, want that of %s", got, p.Name)
	}
}

// hasNothingLeft checks that nothing is left of a Package on the cluster and the management plane.
func (w *world) hasNothingLeft(p *packagesv1.Package) {
	w.Helper()
	release := p.Status.Target.Release
	if got := w.releases(); len(got) > 0 {
		w.Errorf("got HelmReleaseProxies %v, want none", got)
	}
	target := servers.workloads.All()[0].Clientset(w).CoreV1()
	secrets, err := target.Secrets("").List(w.Context(), metav1.ListOptions{})
	w.must(err)
	for _, s := range secrets.Items {
		if strings.Contains(s.Name, release) {
			w.Errorf("Secret %s still exists, want it deleted", s.Name)
		}
	}
	if got := w.text(0, release); got != "" {
		w.Errorf("the ConfigMap of %s still exists, want it deleted", release)
	}
}

// releases returns the names of all HelmReleaseProxies of Packages.
func (w *world) releases() []string {
	w.Helper()
	list := &addonsv1.HelmReleaseProxyList{}
	w.must(w.List(w.Context(), list, client.InNamespace(packagesv1.Namespace)))
	var out []string
	for i := range list.Items {
		out = append(out, list.Items[i].Name)
	}
	return out
}
