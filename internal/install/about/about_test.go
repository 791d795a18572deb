package about

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

func newClient(t *testing.T, objects ...client.Object) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
}

func TestHas(t *testing.T) {
	for name, tt := range map[string]struct {
		plane Plane
		minor string
		want  bool
	}{
		"a minor version it has":              {Plane{Kubernetes: []string{"v1.36.3", "v1.35.4"}}, "1.35", true},
		"a minor version it lacks":            {Plane{Kubernetes: []string{"v1.36.3"}}, "1.35", false},
		"the beginning of a minor version":    {Plane{Kubernetes: []string{"v1.36.3"}}, "1.3", false},
		"a plane that names none may have it": {Plane{}, "1.35", true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tt.plane.Has(tt.minor); got != tt.want {
				t.Errorf("Has(%q) = %t", tt.minor, got)
			}
		})
	}
}

func TestRecordedVersionIsRead(t *testing.T) {
	want := Plane{Version: "v0.1.0", Kubernetes: []string{"v1.36.3", "v1.35.4"}, Bundles: []string{"v1-36-1"}}
	changed := want.configMap()
	changed.Data = map[string]string{"version": "v9"}
	changed.BinaryData = map[string][]byte{"more": {1}}
	for name, c := range map[string]client.Client{"missing": newClient(t), "changed": newClient(t, changed)} {
		t.Run(name, func(t *testing.T) {
			if _, err := (&Keeper{Client: c, Live: c, Plane: want}).Reconcile(t.Context(), ctrl.Request{}); err != nil {
				t.Fatal(err)
			}
			got, err := Read(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("plane (-want +got):\n%s", diff)
			}
		})
	}
}

func TestUnchangedRecordIsNotWritten(t *testing.T) {
	p := Plane{Version: "v0.1.0"}
	c := newClient(t, p.configMap())
	before := &corev1.ConfigMap{}
	if err := c.Get(t.Context(), key(), before); err != nil {
		t.Fatal(err)
	}
	if _, err := (&Keeper{Client: c, Live: c, Plane: p}).Reconcile(t.Context(), ctrl.Request{}); err != nil {
		t.Fatal(err)
	}
	after := &corev1.ConfigMap{}
	if err := c.Get(t.Context(), key(), after); err != nil || after.ResourceVersion != before.ResourceVersion {
		t.Errorf("%v: version %s, then %s", err, before.ResourceVersion, after.ResourceVersion)
	}
}

func TestOlderPlaneHasNoRecord(t *testing.T) {
	if _, err := Read(t.Context(), newClient(t)); !apierrors.IsNotFound(err) {
		t.Errorf("got error %v, want NotFound", err)
	}
}
