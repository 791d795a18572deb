package install

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"sigs.k8s.io/cluster-api/util/conditions"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/controllers/fresh"
	"github.com/drover-dev/drover/internal/registry/bundle"
)

func TestWhatOfAReleaseIsNewsToItsPackage(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(*addonsv1.HelmReleaseProxy)
		want   bool
	}{
		{"nothing", func(*addonsv1.HelmReleaseProxy) {}, false},
		{"a label", func(r *addonsv1.HelmReleaseProxy) { r.Labels = map[string]string{"a": "b"} }, false},
		{"a condition that no Package tells", func(r *addonsv1.HelmReleaseProxy) {
			conditions.Set(r, metav1.Condition{Type: "Other", Status: metav1.ConditionTrue, Reason: "Fine"})
		}, false},
		{"what it should be", func(r *addonsv1.HelmReleaseProxy) { r.Generation++ }, true},
		{"what it tells about", func(r *addonsv1.HelmReleaseProxy) { r.Status.ObservedGeneration++ }, true},
		{"that something failed", func(r *addonsv1.HelmReleaseProxy) { r.Status.Attempt = &addonsv1.FailedAttempt{} }, true},
		{"whether it is ready", func(r *addonsv1.HelmReleaseProxy) {
			conditions.Set(r, metav1.Condition{Type: addonsv1.ReleaseReady, Status: metav1.ConditionTrue, Reason: "Fine"})
		}, true},
		{"whether its cluster answers", func(r *addonsv1.HelmReleaseProxy) {
			conditions.Set(r, metav1.Condition{Type: addonsv1.ClusterAvailable, Status: metav1.ConditionFalse, Reason: "Lost"})
		}, true},
	} {
		was := &addonsv1.HelmReleaseProxy{ObjectMeta: metav1.ObjectMeta{Generation: 1}}
		is := was.DeepCopy()
		tc.change(is)
		if got := releaseChanged(event.UpdateEvent{ObjectOld: was, ObjectNew: is}); got != tc.want {
			t.Errorf("%s: news is %t", tc.name, got)
		}
	}
}

func TestWhatTheControllerWroteItselfIsNoNews(t *testing.T) {
	c := &Controller{}
	own := &addonsv1.HelmReleaseProxy{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a", ResourceVersion: "7"}}
	c.releases.Note(own)
	others := own.DeepCopy()
	others.ResourceVersion = "8"
	news := c.byOthers()
	if news.Create(event.CreateEvent{Object: own}) || news.Update(event.UpdateEvent{ObjectNew: own}) {
		t.Error("its own writes wake it")
	}
	if !news.Create(event.CreateEvent{Object: others}) || !news.Update(event.UpdateEvent{ObjectNew: others}) || !news.Delete(event.DeleteEvent{Object: own}) {
		t.Error("what others do does not wake it")
	}
}

func TestNothingIsDecidedOnWhatACacheHadBefore(t *testing.T) {
	w := newWorld(t)
	w.bundle(1, pack("hello", "0.1.0"))
	w.controller(w.bundleName(1))
	p := w.install("my", packagesv1.PackageSpec{PackageName: "hello", TargetNamespace: "x"})
	now := w.finish(p, digest("hello0.1.0"))
	for name, note := range map[string]func(*Controller, client.Object){
		"of a Package": func(c *Controller, o client.Object) { c.packages.Note(o) }, "of a release": func(c *Controller, o client.Object) { c.releases.Note(o) },
	} {
		c := &Controller{Client: w.Client} // it would fail at anything else than to read
		future := now.DeepCopy()
		future.ResourceVersion = "9" + future.ResourceVersion
		note(c, future)
		got, err := c.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(p)})
		if err != nil || got.RequeueAfter != fresh.Retry {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

func TestAConfigIsHeldAgainstASchemaOnce(t *testing.T) {
	strict := &packagesv1.SourceVersion{Schema: bundle.EncodeSchema([]byte(`{"type":"object","additionalProperties":false}`))}
	loose := &packagesv1.SourceVersion{Schema: bundle.EncodeSchema([]byte(`{"type":"object"}`))}
	c := &configs{}
	first := c.validate(strict, "a: b")
	if first == nil || c.validate(strict, "a: b") != first { //nolint:errorlint // the very same one is what is meant
		t.Error("it was looked at twice")
	}
	if err := c.validate(strict, ""); err != nil {
		t.Errorf("another config: %v", err)
	}
	if err := c.validate(loose, "a: b"); err != nil {
		t.Errorf("another schema: %v", err)
	}
	if got := c.known.Len(); got != 3 {
		t.Errorf("%d are remembered, want 3", got)
	}
}
