package target

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
)

func TestTargetOfPackage(t *testing.T) {
	for _, tc := range []struct {
		name, namespace, pack string
		controllers           []string
		want                  Target
		wrong                 string
	}{
		{"a namespace of the cluster's own", "eksa-packages-billy", "my-hello", []string{"billy"}, Target{"billy", "my-hello"}, ""},
		{"a cluster with dashes", "eksa-packages-a-b", "c", []string{"a", "a-b"}, Target{"a-b", "c"}, ""},
		{"its own namespace, but no controller", "eksa-packages-billy", "x", []string{"bill"}, Target{}, `PackageBundleController "billy" not found`},
		{"the seed's name", "eksa-packages", "billy-my-hello", []string{"tlhowe", "billy"}, Target{"billy", "my-hello"}, ""},
		{"the seed's example", "eksa-packages", "billy-my", []string{"billy"}, Target{"billy", "my"}, ""},
		{"the longest counts", "eksa-packages", "billy-my-hello", []string{"billy", "billy-my"}, Target{"billy-my", "hello"}, ""},
		{"a name is a whole element", "eksa-packages", "billyx-my", []string{"billy"}, Target{}, `"billyx-my" not found`},
		{"nothing is left for the release", "eksa-packages", "billy", []string{"billy"}, Target{}, "<cluster>-<release>"},
		{"nothing but a dash is left", "eksa-packages", "billy-", []string{"billy"}, Target{}, "<cluster>-<release>"},
		{"another namespace", "default", "billy-my", []string{"billy"}, Target{}, ErrNamespace.Error()},
		{"a namespace that begins alike", "eksa-packagesx", "billy-my", []string{"billy"}, Target{}, ErrNamespace.Error()},
		{"a namespace of no cluster", "eksa-packages-", "billy-my", []string{"billy", ""}, Target{}, ErrNamespace.Error()},
	} {
		t.Run(tc.name, func(t *testing.T) {
			key := types.NamespacedName{Namespace: tc.namespace, Name: tc.pack}
			got, err := Of(key, func(c string) (string, bool) { return "", slices.Contains(tc.controllers, c) })
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("target (-want +got):\n%s", diff)
			}
			if (err == nil) != (tc.wrong == "") || err != nil && !strings.Contains(err.Error(), tc.wrong) {
				t.Errorf("error is %v, want one with %q", err, tc.wrong)
			}
			if err == nil && (!Still(key, got) || Name(tc.namespace, got.Cluster, got.Release) != tc.pack) {
				t.Errorf("%+v does not lead back to %q", got, tc.pack)
			}
		})
	}
}

func TestResolvedTargetIsKept(t *testing.T) {
	key := types.NamespacedName{Namespace: "eksa-packages", Name: "billy-my-hello"}
	if !Still(key, Target{"billy", "my-hello"}) {
		t.Error("a controller with a longer name moved it")
	}
	for _, other := range []Target{{"billy", "hello"}, {"tlhowe", "my-hello"}, {}} {
		if Still(key, other) {
			t.Errorf("%+v can't be its target", other)
		}
	}
}

func TestLongerNameOfAnotherTenantCapturesNothing(t *testing.T) {
	key := types.NamespacedName{Namespace: "eksa-packages", Name: "prod-db-x"}
	for _, tc := range []struct {
		name    string
		tenants map[string]string
		want    Target
		wrong   any
	}{
		{"two of administrators", map[string]string{"prod": "", "prod-db": ""}, Target{"prod-db", "x"}, nil},
		{"two of one tenant", map[string]string{"prod": "a", "prod-db": "a"}, Target{"prod-db", "x"}, nil},
		{"one of administrators, and one that was created to capture", map[string]string{"prod": "", "prod-db": "a"}, Target{}, new(*AmbiguousError)},
		{"of two tenants", map[string]string{"prod": "b", "prod-db": "a"}, Target{}, new(*AmbiguousError)},
		{"only one", map[string]string{"prod-db": "a"}, Target{"prod-db", "x"}, nil},
	} {
		got, err := Of(key, func(c string) (string, bool) {
			tenant, exists := tc.tenants[c]
			return tenant, exists
		})
		if got != tc.want || (err != nil) != (tc.wrong != nil) || tc.wrong != nil && !errors.As(err, tc.wrong) {
			t.Errorf("%s: %+v, %v", tc.name, got, err)
		}
	}
}

func TestTenant(t *testing.T) {
	for name, tc := range map[string]struct{ namespace, label, want string }{
		"from a spec":         {anywherev1.SystemNamespace, "team-a", "team-a"},
		"without a label":     {anywherev1.SystemNamespace, "", anywherev1.SystemNamespace},
		"of Cluster API":      {"team-b", "", "team-b"},
		"with a forged label": {"team-b", "team-a", "team-b"},
	} {
		cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: tc.namespace, Labels: map[string]string{anywherev1.ClusterNamespaceLabel: tc.label}}}
		if got := Tenant(cluster); got != tc.want {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
	}
}
