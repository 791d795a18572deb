package web

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/test/fleettest"
)

func TestDriftOfAPackageIsShown(t *testing.T) {
	const namespace = packagesv1.NamespacePrefix + "ams-web-01"
	p := &packagesv1.Package{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "notes"}}
	p.Status.State = packagesv1.StateInstalled
	r := &addonsv1.HelmReleaseProxy{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: "notes", Labels: map[string]string{clusterv1.ClusterNameLabel: "ams-web-01", packagesv1.PackageLabel: "notes"},
	}}
	w := newWorld(t, append(fleet(fleettest.Healthy).Objects(1), p, r), nil)
	if got := w.rows()["drover/team-web/ams-web-01"].Packages; got != (Count{Ready: 1, Total: 1}) {
		t.Errorf("packages %+v", got)
	}
	page, _ := mustJoin(t, w.view.hub, "")
	if err := w.Get(t.Context(), client.ObjectKeyFromObject(r), r); err != nil {
		t.Fatal(err)
	}
	r.Status.Conditions = []metav1.Condition{{Type: addonsv1.ReleaseInSync, Status: metav1.ConditionFalse, Reason: "Drifted"}}
	if err := w.Update(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	w.await("the row has the drift", func() bool { return w.rows()["drover/team-web/ams-web-01"].Packages.Drifted == 1 })
	if got := told(page); !strings.Contains(got, "row") {
		t.Errorf("the page got %s", got)
	}
	d, err := w.view.detail(t.Context(), Key{drover, "team-web", "ams-web-01"})
	if err != nil || len(d.Packages) != 1 || !d.Packages[0].Drifted {
		t.Errorf("%v, %+v", err, d.Packages)
	}
}
