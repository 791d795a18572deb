package packages_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/test/managertest"
	"github.com/drover-dev/drover/internal/test/workloadtest"
)

// neverReady is a Deployment. The test clusters have no controllers that create its Pods.
const neverReady = `apiVersion: apps/v1
kind: Deployment
metadata: {name: {{ .Release.Name }}}
spec:
  selector: {matchLabels: {app: {{ .Release.Name }}}}
  template:
    metadata: {labels: {app: {{ .Release.Name }}}}
    spec: {containers: [{name: c, image: nowhere.example.com/c}]}
`

// awaitFailure waits until a Package reports a failed installation.
func (w *world) awaitFailure(p *packagesv1.Package, words string) {
	w.Helper()
	w.until(p.Name+" fails with "+words, func() bool {
		if w.Get(w.Context(), client.ObjectKeyFromObject(p), p) != nil {
			return false
		}
		c := meta.FindStatusCondition(p.Status.Conditions, packagesv1.Installed)
		return c != nil && c.Status == metav1.ConditionFalse && c.Reason == packagesv1.InstallFailedReason && strings.Contains(p.Status.Detail, words)
	})
}

func TestFailedUpgradeIsRolledBackOnRequest(t *testing.T) {
	w := newWorld(t)
	w.program = managertest.Checked
	w.begin()
	defer w.clean()
	first := w.publish(1, pack("hello", "0.1.0", w.chart("hello", "0.1.0")))
	second := w.publish(2, pack("hello", "0.2.0", w.chart("hello", "0.2.0", neverReady)))
	third := w.publish(3, pack("hello", "0.3.0", w.chart("hello", "0.3.0")))
	w.use(0, first.Name)
	packs := map[string]*packagesv1.Package{}
	for release, rollback := range map[string]bool{"back": true, "stays": false} {
		packs[release] = &packagesv1.Package{
			ObjectMeta: metav1.ObjectMeta{Namespace: packagesv1.Namespace, Name: w.clusters[0] + "-" + release},
			Spec:       packagesv1.PackageSpec{PackageName: "hello", RollbackOnFailure: rollback, Timeout: &metav1.Duration{Duration: 2 * time.Second}},
		}
		w.must(w.Create(t.Context(), packs[release]))
	}
	for _, p := range packs {
		w.awaitInstalled(p, "0.1.0")
	}
	w.activate(0, second.Name)
	for release, want := range map[string]string{"back": "hello 0.1.0 images.example.com", "stays": "hello 0.2.0 images.example.com"} {
		p := packs[release]
		w.awaitFailure(p, "")
		w.until(release+" has the right version", func() bool { return w.text(0, release) == want })
		_, err := servers.workloads.All()[0].Clientset(t).AppsV1().Deployments("from-chart").Get(t.Context(), release, metav1.GetOptions{})
		if exists := err == nil; exists != (release == "stays") {
			t.Errorf("%s: the Deployment exists: %t, %v", release, exists, err)
		}
		if p.Status.State != packagesv1.StateUpdating || p.Status.CurrentVersion != "0.1.0" || p.Status.Detail == "" {
			t.Errorf("%s: %+v", release, p.Status)
		}
		t.Logf("%s: %v, %s", release, w.records(0, release), p.Status.Detail)
	}
	w.activate(0, third.Name)
	for _, p := range packs {
		w.awaitInstalled(p, "0.3.0")
	}
}

func TestFailedRegistryIsReportedAndRetried(t *testing.T) {
	w := newWorld(t)
	l := w.forger()
	w.flags = w.settings(l.host, l.ca)
	w.begin()
	defer w.clean()
	charts := func(r *http.Response) bool { return strings.Contains(r.Request.URL.Path, "/charts/hello") }
	troubles := map[string]struct {
		spoil func(*http.Response) error
		words string
	}{
		"dead": {func(r *http.Response) error {
			if charts(r) {
				return errors.New("connection refused")
			}
			return nil
		}, "502"},
		"truncating": {func(r *http.Response) error {
			if !charts(r) || r.Request.Method != http.MethodGet || !strings.Contains(r.Request.URL.Path, "/blobs/") {
				return nil
			}
			text, err := io.ReadAll(r.Body)
			r.Body = io.NopCloser(bytes.NewReader(text[:len(text)/2])) // shorter than the header says
			return err
		}, "unexpected EOF"},
	}
	var all []packagesv1.BundlePackage
	for name := range troubles {
		all = append(all, pack("hello-"+name, "0.1.0", w.chart("hello-"+name, "0.1.0")))
	}
	b := w.publish(1, append(all, pack("other", "0.1.0", w.chart("other", "0.1.0")))...)
	w.use(0, b.Name)
	w.until("the bundle is stored", func() bool { return w.isStored(b.Name) })
	for name, trouble := range troubles {
		l.spoil.Store(&trouble.spoil)
		p := w.install(0, "hello-"+name, "hello-"+name)
		w.awaitFailure(p, trouble.words)
		t.Logf("%s: %s", name, p.Status.Detail)
		other := w.install(0, "beside-"+name, "other")
		w.awaitInstalled(other, "0.1.0")
		if got := w.text(0, "hello-"+name); got != "" {
			t.Errorf("%s was installed: %q", name, got)
		}
		l.spoil.Store(nil)
		w.awaitInstalled(p, "0.1.0")
	}
}

func TestHangingRegistryDelaysOnlyItsPackage(t *testing.T) {
	w := newWorld(t)
	w.begin()
	defer w.clean()
	b := w.publish(1, pack("slow", "0.1.0", w.chart("slow", "0.1.0")), pack("other", "0.1.0", w.chart("other", "0.1.0")))
	w.use(0, b.Name)
	w.until("the bundle is stored", func() bool { return w.isStored(b.Name) })
	w.registry.HangAt("/charts/slow")
	slow := w.install(0, "slow", "slow")
	w.until("the registry gets a request", func() bool { return w.registry.Count("/charts/slow/") > 1 })
	w.awaitInstalled(w.install(0, "other", "other"), "0.1.0")
	w.must(w.Get(t.Context(), client.ObjectKeyFromObject(slow), slow))
	if slow.Status.State != packagesv1.StateInstalling || slow.Status.Detail != "Downloading the chart of version 0.1.0" {
		t.Errorf("the Package reports %s, %q", slow.Status.State, slow.Status.Detail)
	}
	w.registry.Resume()
	w.awaitInstalled(slow, "0.1.0")
}

// swallow connects the manager to the second cluster through a proxy that can hang.
func (w *world) swallow() *workloadtest.Front {
	w.Helper()
	hole := workloadtest.NewFront(w, servers.workloads.All()[1].Config)
	w.through = func(to *rest.Config) *rest.Config {
		if to == servers.workloads.All()[1].Config {
			return hole.Config
		}
		return to
	}
	return hole
}

func TestHangingClusterDelaysOnlyItsPackages(t *testing.T) {
	w := newWorld(t)
	w.program = managertest.Checked
	hole := w.swallow()
	w.begin()
	defer w.clean()
	first := w.publish(1, pack("hello", "0.1.0", w.chart("hello", "0.1.0")))
	second := w.publish(2, pack("hello", "0.2.0", w.chart("hello", "0.2.0")))
	const lost = 12 // more than the limits per cluster and the workers
	w.use(0, first.Name)
	w.use(1, first.Name)
	good := w.install(0, "my", "hello")
	var dead []*packagesv1.Package
	for i := range lost {
		dead = append(dead, w.install(1, fmt.Sprintf("lost%d", i), "hello"))
	}
	for _, p := range append(dead, good) {
		w.awaitInstalled(p, "0.1.0")
	}
	hole.Hang()
	w.activate(1, second.Name)
	w.until("the hanging cluster gets a request", func() bool { return len(hole.Requests()) > 0 })
	began := time.Now()
	w.activate(0, second.Name)
	w.awaitInstalled(good, "0.2.0")
	t.Logf("an upgrade beside the hanging cluster took %s", time.Since(began).Round(time.Millisecond))
	for _, p := range dead {
		w.must(w.Get(t.Context(), client.ObjectKeyFromObject(p), p))
		if p.Status.CurrentVersion != "0.1.0" {
			t.Errorf("%s: %+v", p.Name, p.Status)
		}
	}
	began = time.Now()
	w.must(w.Delete(t.Context(), good))
	w.gone(good)
	t.Logf("an uninstallation took %s", time.Since(began).Round(time.Millisecond))

	t.Log("packages on the hanging cluster are abandoned")
	for _, p := range dead {
		w.must(w.Delete(t.Context(), p))
	}
	w.until("the cluster is reported as unreachable", func() bool {
		c := meta.FindStatusCondition(w.reread(dead[0]).Status.Conditions, packagesv1.Installed)
		return c != nil && c.Status == metav1.ConditionUnknown && c.Reason == packagesv1.UninstallingReason
	})
	for _, p := range dead {
		w.must(w.Patch(t.Context(), p, client.RawPatch("application/merge-patch+json",
			fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"true"}}}`, packagesv1.AbandonAnnotation))))
	}
	for _, p := range dead {
		w.gone(p)
	}
	w.until("events are recorded", func() bool { return w.events("PackageAbandoned", "was unreachable") == lost })
	w.must(w.Patch(t.Context(), &packagesv1.PackageBundleController{ObjectMeta: metav1.ObjectMeta{Namespace: packagesv1.Namespace, Name: w.clusters[1]}},
		client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"true"}}}`, packagesv1.AbandonAnnotation))))
}

func (w *world) reread(p *packagesv1.Package) *packagesv1.Package {
	if err := w.Get(w.Context(), client.ObjectKeyFromObject(p), p); !apierrors.IsNotFound(err) {
		w.must(err)
	}
	return p
}

// events counts the events of this test's Packages.
func (w *world) events(reason, words string) int {
	w.Helper()
	list := &corev1.EventList{}
	w.must(w.List(w.Context(), list, client.InNamespace(packagesv1.Namespace)))
	n := 0
	for _, e := range list.Items {
		if e.Reason == reason && strings.Contains(e.Message, words) && strings.HasPrefix(e.InvolvedObject.Name, w.clusters[1]) {
			n++
		}
	}
	return n
}
