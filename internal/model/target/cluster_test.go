package target

import (
	"errors"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/model/owner"
)

// ofTenant sets the metadata of objects that Drover creates for the Cluster of a tenant.
func ofTenant(o metav1.Object, tenant, uid string) {
	o.SetLabels(owner.Labels(&metav1.ObjectMeta{Namespace: tenant, Name: "billy"}))
	if uid != "" {
		o.SetAnnotations(map[string]string{anywherev1.ClusterUIDAnnotation: uid})
	}
}

func clusterIn(namespace string) clusterv1.Cluster {
	return clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "billy"}}
}

// tenants returns the Cluster that Drover created for a tenant.
func tenants(tenant, uid string) clusterv1.Cluster {
	c := clusterIn("eksa-system")
	ofTenant(&c, tenant, uid)
	return c
}

func TestClusterOfController(t *testing.T) {
	administered := tenants("a", "1")
	administered.Annotations[anywherev1.AdministeredAnnotation] = "true"
	for _, tc := range []struct {
		name, wanted string
		// tenant and uid are those of the Cluster that the PackageBundleController was made for.
		tenant, uid string
		found       []clusterv1.Cluster
		want        string
		wrong       any
	}{
		{"the only one", "", "", "", []clusterv1.Cluster{clusterIn("teams")}, "teams", nil},
		{"the one that is named", "b", "", "", []clusterv1.Cluster{clusterIn("a"), clusterIn("b"), clusterIn("eksa-system")}, "b", nil},
		{"the one that is named is not there", "c", "", "", []clusterv1.Cluster{clusterIn("a")}, "", new(*UnknownError)},
		{"the usual place", "", "", "", []clusterv1.Cluster{clusterIn("a"), clusterIn("eksa-system")}, "eksa-system", nil},
		{"several", "", "", "", []clusterv1.Cluster{clusterIn("a"), clusterIn("b")}, "", new(*AmbiguousError)},
		{"none", "", "", "", nil, "", new(*UnknownError)},
		{"made for each other", "eksa-system", "a", "1", []clusterv1.Cluster{tenants("a", "1")}, "eksa-system", nil},
		{"made for each other by an earlier version", "eksa-system", "a", "", []clusterv1.Cluster{tenants("a", "1")}, "eksa-system", nil},
		{"a tenant's that has the name of another", "", "", "", []clusterv1.Cluster{clusterIn("teams"), tenants("a", "1")}, "teams", nil},
		{"a tenant's that has the name of one that is gone", "", "", "", []clusterv1.Cluster{tenants("a", "1")}, "", new(*DeniedError)},
		{"a tenant's that an administrator named", "eksa-system", "", "", []clusterv1.Cluster{tenants("a", "1")}, "eksa-system", nil},
		{"made for another tenant", "eksa-system", "b", "2", []clusterv1.Cluster{tenants("a", "1")}, "", new(*DeniedError)},
		{"made for a deleted Cluster", "eksa-system", "a", "2", []clusterv1.Cluster{tenants("a", "1")}, "", new(*DeniedError)},
		{"an administrator's", "", "", "", []clusterv1.Cluster{administered}, "eksa-system", nil},
		{"an administrator's that has the name of a tenant's", "eksa-system", "b", "2", []clusterv1.Cluster{administered}, "", new(*DeniedError)},
		{"one of Cluster API that has the name of a tenant's", "teams", "b", "2", []clusterv1.Cluster{clusterIn("teams")}, "", new(*DeniedError)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			controller := &packagesv1.PackageBundleController{ObjectMeta: metav1.ObjectMeta{Name: "billy"}}
			controller.Spec.ClusterNamespace = tc.wanted
			if tc.tenant != "" {
				ofTenant(controller, tc.tenant, tc.uid)
			}
			other := clusterIn("elsewhere")
			other.Name = "other"
			got, err := Cluster(controller, append(tc.found, other))
			if got != nil && got.Namespace != tc.want || got == nil && tc.want != "" {
				t.Errorf("found %v, want one in %q", got, tc.want)
			}
			if (err != nil) != (tc.wrong != nil) || tc.wrong != nil && (!errors.As(err, tc.wrong) || !IsUnclear(err)) {
				t.Errorf("error is %v", err)
			}
			if err != nil && strings.Contains(err.Error(), `"b"`) {
				t.Errorf("the message names another tenant: %v", err)
			}
		})
	}
}

func TestPackagesOfAForeignNamespaceAreDenied(t *testing.T) {
	now := metav1.Now()
	captured := tenants("a", "1")
	captured.CreationTimestamp = now
	admins, administered := clusterIn("eksa-system"), tenants("a", "1")
	administered.Annotations[anywherev1.AdministeredAnnotation] = "true"
	namespace := func(name, tenant, uid string, age time.Duration) metav1.Object {
		o := &metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(now.Add(-age))}
		if tenant != "" {
			ofTenant(o, tenant, uid)
		}
		return o
	}
	for _, tc := range []struct {
		name      string
		cluster   *clusterv1.Cluster
		namespace metav1.Object
		denied    bool
	}{
		{"its own", &captured, namespace("eksa-packages-billy", "a", "1", 0), false},
		{"its own, of an earlier version", &captured, namespace("eksa-packages-billy", "a", "", 0), false},
		{"one that an administrator created", &captured, namespace("eksa-packages-billy", "", "", 0), true},
		{"one of another tenant", &captured, namespace("eksa-packages-billy", "b", "2", 0), true},
		{"one of a deleted Cluster", &captured, namespace("eksa-packages-billy", "a", "2", 0), true},
		{"one of a deleted Cluster, of an earlier version", &captured, namespace("eksa-packages-billy", "a", "", time.Hour), true},
		{"the shared one", &captured, namespace("eksa-packages", "", "", 0), false},
		{"that of an administrator's cluster", &admins, namespace("eksa-packages-billy", "", "", 0), false},
		{"one that a tenant left for an administrator's cluster", &administered, namespace("eksa-packages-billy", "b", "2", 0), true},
		{"one that a tenant left for a cluster of Cluster API", &admins, namespace("eksa-packages-billy", "b", "2", 0), true},
		{"one that an administrator prepared", &administered, namespace("eksa-packages-billy", "", "", 0), false},
	} {
		if err := CheckNamespace(tc.cluster, tc.namespace); (err != nil) != tc.denied {
			t.Errorf("%s: got error %v, want an error: %t", tc.name, err, tc.denied)
		}
	}
}
