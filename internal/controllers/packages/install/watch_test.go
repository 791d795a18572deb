package install

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"sigs.k8s.io/cluster-api/util/conditions"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/registry/bundle"
)

func TestReleaseChanged(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(*addonsv1.HelmReleaseProxy)
		want   bool
	}{
		{"nothing", func(*addonsv1.HelmReleaseProxy) {}, false},
		{"a label", func(r *addonsv1.HelmReleaseProxy) { r.Labels = map[string]string{"a": "b"} }, false},
		{"a condition that Packages don't report", func(r *addonsv1.HelmReleaseProxy) {
			conditions.Set(r, metav1.Condition{Type: "Other", Status: metav1.ConditionTrue, Reason: "Fine"})
		}, false},
		{"the spec", func(r *addonsv1.HelmReleaseProxy) { r.Generation++ }, true},
		{"the observed generation", func(r *addonsv1.HelmReleaseProxy) { r.Status.ObservedGeneration++ }, true},
		{"a failed attempt", func(r *addonsv1.HelmReleaseProxy) { r.Status.Attempt = &addonsv1.FailedAttempt{} }, true},
		{"ReleaseReady", func(r *addonsv1.HelmReleaseProxy) {
			conditions.Set(r, metav1.Condition{Type: addonsv1.ReleaseReady, Status: metav1.ConditionTrue, Reason: "Fine"})
		}, true},
		{"ClusterAvailable", func(r *addonsv1.HelmReleaseProxy) {
			conditions.Set(r, metav1.Condition{Type: addonsv1.ClusterAvailable, Status: metav1.ConditionFalse, Reason: "Lost"})
		}, true},
	} {
		was := &addonsv1.HelmReleaseProxy{ObjectMeta: metav1.ObjectMeta{Generation: 1}}
		is := was.DeepCopy()
		tc.change(is)
		if got := releaseChanged(event.UpdateEvent{ObjectOld: was, ObjectNew: is}); got != tc.want {
			t.Errorf("%s: changed is %t", tc.name, got)
		}
	}
}

func TestEventsOfOwnWritesAreDropped(t *testing.T) {
	own := &addonsv1.HelmReleaseProxy{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a", ResourceVersion: "7"}}
	others := own.DeepCopy()
	others.ResourceVersion = "8"
	filter := byOthers(func(o client.Object) bool { return o.GetResourceVersion() == "7" })
	if filter.Create(event.CreateEvent{Object: own}) || filter.Update(event.UpdateEvent{ObjectNew: own}) {
		t.Error("an own write triggers a reconcile")
	}
	if !filter.Create(event.CreateEvent{Object: others}) || !filter.Update(event.UpdateEvent{ObjectNew: others}) || !filter.Delete(event.DeleteEvent{Object: own}) {
		t.Error("a write of others triggers no reconcile")
	}
}

func TestConfigIsValidatedOnce(t *testing.T) {
	strict := &packagesv1.SourceVersion{Schema: bundle.EncodeSchema([]byte(`{"type":"object","additionalProperties":false}`))}
	loose := &packagesv1.SourceVersion{Schema: bundle.EncodeSchema([]byte(`{"type":"object"}`))}
	c := &configs{}
	first := c.validate(strict, "a: b")
	if first == nil || c.validate(strict, "a: b") != first { //nolint:errorlint // identity shows that it was cached
		t.Error("it was validated twice")
	}
	if err := c.validate(strict, ""); err != nil {
		t.Errorf("another config: %v", err)
	}
	if err := c.validate(loose, "a: b"); err != nil {
		t.Errorf("another schema: %v", err)
	}
	if got := c.known.Len(); got != 3 {
		t.Errorf("%d results are cached, want 3", got)
	}
}
