package index

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
)

func release(namespace, name, chart string, cluster corev1.ObjectReference) *addonsv1.HelmReleaseProxy {
	r := &addonsv1.HelmReleaseProxy{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	if chart != "" {
		r.Labels = map[string]string{addonsv1.HelmChartProxyLabel: ChartLabel(chart)}
	}
	r.Spec.ClusterRef = cluster
	return r
}

func readers(t *testing.T, objects ...ctrlclient.Object) map[string]Releases {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := addonsv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	b := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...)
	for name, keys := range map[string]ctrlclient.IndexerFunc{byChart: chartKeys, byCluster: clusterKeys} {
		b = b.WithIndex(&addonsv1.HelmReleaseProxy{}, name, keys)
	}
	c := b.Build()
	return map[string]Releases{"with indexes": {Reader: c, Indexed: true}, "without indexes": {Reader: c}}
}

func names(releases []addonsv1.HelmReleaseProxy) []string {
	out := []string{}
	for _, r := range releases {
		out = append(out, r.Namespace+"/"+r.Name)
	}
	slices.Sort(out)
	return out
}

func TestReleasesAreFoundByChartAndCluster(t *testing.T) {
	long := strings.Repeat("x", 100)
	all := readers(t,
		release("ns", "cni-a", "cni", corev1.ObjectReference{Name: "a"}),
		release("ns", "cni-b", "cni", corev1.ObjectReference{Name: "b"}),
		release("ns", "long-a", long, corev1.ObjectReference{Name: "a"}),
		release("other", "cni-a", "cni", corev1.ObjectReference{Name: "a"}),
		release("other", "manual", "", corev1.ObjectReference{Namespace: "ns", Name: "a"}),
	)
	for kind, r := range all {
		for name, tc := range map[string]struct {
			find func() ([]addonsv1.HelmReleaseProxy, error)
			want []string
		}{
			"by chart": {func() ([]addonsv1.HelmReleaseProxy, error) {
				return r.OfChart(t.Context(), ctrlclient.ObjectKey{Namespace: "ns", Name: "cni"})
			}, []string{"ns/cni-a", "ns/cni-b"}},
			"by chart with a long name": {func() ([]addonsv1.HelmReleaseProxy, error) {
				return r.OfChart(t.Context(), ctrlclient.ObjectKey{Namespace: "ns", Name: long})
			}, []string{"ns/long-a"}},
			"by chart without releases": {func() ([]addonsv1.HelmReleaseProxy, error) {
				return r.OfChart(t.Context(), ctrlclient.ObjectKey{Namespace: "ns", Name: "dns"})
			}, []string{}},
			"by cluster, of any namespace": {func() ([]addonsv1.HelmReleaseProxy, error) {
				return r.OfCluster(t.Context(), ctrlclient.ObjectKey{Namespace: "ns", Name: "a"})
			}, []string{"ns/cni-a", "ns/long-a", "other/manual"}},
			"by cluster of the other namespace": {func() ([]addonsv1.HelmReleaseProxy, error) {
				return r.OfCluster(t.Context(), ctrlclient.ObjectKey{Namespace: "other", Name: "a"})
			}, []string{"other/cni-a"}},
		} {
			found, err := tc.find()
			if diff := cmp.Diff(tc.want, names(found)); err != nil || diff != "" {
				t.Errorf("%s %s: error %v (-want +got):\n%s", name, kind, err, diff)
			}
		}
	}
}

func TestChartLabelFitsALabel(t *testing.T) {
	if got := ChartLabel("cni"); got != "cni" {
		t.Errorf("label %q, want the name", got)
	}
	long := strings.Repeat("x", 100)
	if got := ChartLabel(long); len(got) > 63 || got == ChartLabel(long+"y") {
		t.Errorf("label %q is too long or not unique", got)
	}
}

func TestKeysOfOtherKindsAreEmpty(t *testing.T) {
	if got := clusterKeys(&corev1.Secret{}); got != nil {
		t.Errorf("keys %v of a Secret", got)
	}
	if got := chartKeys(release("ns", "manual", "", corev1.ObjectReference{})); got != nil {
		t.Errorf("keys %v of a release without a HelmChartProxy", got)
	}
}

func TestOnlyPermittedReleasesOfOthersAreEffective(t *testing.T) {
	release := func(namespace string, applied *addonsv1.AppliedRelease) *addonsv1.HelmReleaseProxy {
		r := &addonsv1.HelmReleaseProxy{ObjectMeta: metav1.ObjectMeta{Namespace: "mine"}, Status: addonsv1.HelmReleaseProxyStatus{Applied: applied}}
		r.Spec.ClusterRef.Namespace = namespace
		return r
	}
	for name, tc := range map[string]struct {
		release *addonsv1.HelmReleaseProxy
		want    bool
	}{
		"same namespace":               {release("mine", nil), true},
		"no namespace":                 {release("", nil), true},
		"another namespace":            {release("theirs", nil), false},
		"another namespace, permitted": {release("theirs", &addonsv1.AppliedRelease{}), true},
	} {
		if got := Effective(tc.release); got != tc.want {
			t.Errorf("%s: got %t, want %t", name, got, tc.want)
		}
	}
}
