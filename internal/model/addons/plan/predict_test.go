package plan

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	"github.com/drover-dev/drover/internal/model/addons/index"
)

func newChart(change func(*addonsv1.HelmChartProxy)) *addonsv1.HelmChartProxy {
	c := &addonsv1.HelmChartProxy{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "cni", UID: "u"},
		Spec: addonsv1.HelmChartProxySpec{
			ClusterSelector: metav1.LabelSelector{MatchLabels: map[string]string{"cni": "yes"}},
			ChartName:       "cilium", RepoURL: "https://charts", ReleaseNamespace: "kube-system", ValuesTemplate: "name: {{ .Cluster.metadata.name }}",
		},
	}
	if change != nil {
		change(c)
	}
	return c
}

func newCluster(name string, change func(*clusterv1.Cluster)) *clusterv1.Cluster {
	c := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, Labels: map[string]string{"cni": "yes"}}}
	if change != nil {
		change(c)
	}
	return c
}

func newClient(t *testing.T, objects ...ctrlclient.Object) ctrlclient.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(clusterv1.AddToScheme(scheme), addonsv1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
}

// existing is the release that the controller would have created on a cluster.
func existing(t *testing.T, chart *addonsv1.HelmChartProxy, cluster *clusterv1.Cluster) *addonsv1.HelmReleaseProxy {
	t.Helper()
	found, err := Predict(t.Context(), newClient(t, cluster), chart)
	if err != nil || len(found) != 1 || found[0].After == nil {
		t.Fatalf("predictions %+v, error %v", found, err)
	}
	return found[0].After
}

func predict(t *testing.T, chart *addonsv1.HelmChartProxy, objects ...ctrlclient.Object) map[string]Action {
	t.Helper()
	found, err := Predict(t.Context(), newClient(t, objects...), chart)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]Action{}
	for _, p := range found {
		out[p.Cluster] = p.Action
		if p.Err != nil {
			out[p.Cluster] = Action("error: " + p.Err.Error())
		}
	}
	return out
}

func TestPredict(t *testing.T) {
	a, b := newCluster("a", nil), newCluster("b", nil)
	unselected := newCluster("a", func(c *clusterv1.Cluster) { c.Labels = nil })
	for name, tc := range map[string]struct {
		chart   func(*addonsv1.HelmChartProxy)
		objects func(t *testing.T) []ctrlclient.Object
		want    map[string]Action
	}{
		"new clusters": {objects: func(*testing.T) []ctrlclient.Object { return []ctrlclient.Object{a, b} }, want: map[string]Action{"a": Install, "b": Install}},
		"no change": {objects: func(t *testing.T) []ctrlclient.Object {
			t.Helper()
			return []ctrlclient.Object{a, existing(t, newChart(nil), a)}
		}, want: map[string]Action{"a": Unchanged}},
		"a new version": {
			chart: func(c *addonsv1.HelmChartProxy) { c.Spec.Version = "2" },
			objects: func(t *testing.T) []ctrlclient.Object {
				t.Helper()
				return []ctrlclient.Object{a, b, existing(t, newChart(nil), a)}
			}, want: map[string]Action{"a": Upgrade, "b": Install},
		},
		"another namespace": {
			chart: func(c *addonsv1.HelmChartProxy) { c.Spec.ReleaseNamespace = "cni" },
			objects: func(t *testing.T) []ctrlclient.Object {
				t.Helper()
				return []ctrlclient.Object{a, existing(t, newChart(nil), a)}
			}, want: map[string]Action{"a": Reinstall},
		},
		"a cluster that is no longer selected": {objects: func(t *testing.T) []ctrlclient.Object {
			t.Helper()
			return []ctrlclient.Object{unselected, existing(t, newChart(nil), a)}
		}, want: map[string]Action{"a": Uninstall}},
		"a cluster that is no longer selected, installed once": {
			chart: func(c *addonsv1.HelmChartProxy) { c.Spec.ReconcileStrategy = addonsv1.InstallOnce },
			objects: func(t *testing.T) []ctrlclient.Object {
				t.Helper()
				return []ctrlclient.Object{unselected, existing(t, newChart(nil), a)}
			}, want: map[string]Action{},
		},
		"a cluster that is gone": {objects: func(t *testing.T) []ctrlclient.Object {
			t.Helper()
			return []ctrlclient.Object{existing(t, newChart(nil), a)}
		}, want: map[string]Action{"a": Uninstall}},
		"a paused cluster": {objects: func(*testing.T) []ctrlclient.Object {
			return []ctrlclient.Object{newCluster("a", func(c *clusterv1.Cluster) { c.Spec.Paused = ptr.To(true) })}
		}, want: map[string]Action{}},
		"two releases on one cluster": {objects: func(t *testing.T) []ctrlclient.Object {
			t.Helper()
			first, second := existing(t, newChart(nil), a), existing(t, newChart(nil), a)
			first.Name, second.Name = "x", "y"
			return []ctrlclient.Object{a, second, first}
		}, want: map[string]Action{"a": `error: found 2 HelmReleaseProxies, including "x" and "y"; delete all but one`}},
		"values that can't be rendered": {
			chart:   func(c *addonsv1.HelmChartProxy) { c.Spec.ValuesTemplate = `{{ fail "no zone" }}` },
			objects: func(*testing.T) []ctrlclient.Object { return []ctrlclient.Object{a} },
			want:    map[string]Action{"a": `error: rendering values: valuesTemplate:1:3: executing "valuesTemplate" at <fail "no zone">: error calling fail: no zone`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, predict(t, newChart(tc.chart), tc.objects(t)...)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestPredictKeepsRandomValues(t *testing.T) {
	random := func(c *addonsv1.HelmChartProxy) { c.Spec.ValuesTemplate = "password: {{ randAlphaNum 16 }}" }
	a := newCluster("a", nil)
	got := predict(t, newChart(random), a, existing(t, newChart(random), a))
	if diff := cmp.Diff(map[string]Action{"a": Unchanged}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestPredictRejectsAnInvalidSpec(t *testing.T) {
	for want, change := range map[string]func(*addonsv1.HelmChartProxy){
		"spec.valuesTemplate": func(c *addonsv1.HelmChartProxy) { c.Spec.ValuesTemplate = "{{" },
		"reading spec.clusterSelector": func(c *addonsv1.HelmChartProxy) {
			c.Spec.ClusterSelector = metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Like"}}}
		},
	} {
		if _, err := Predict(t.Context(), newClient(t), newChart(change)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

func TestRetainedValues(t *testing.T) {
	r := &addonsv1.HelmReleaseProxy{Spec: addonsv1.HelmReleaseProxySpec{ClusterRef: corev1.ObjectReference{Name: "a"}}}
	for name, tc := range map[string]struct {
		cluster *clusterv1.Cluster
		chart   func(*addonsv1.HelmChartProxy)
		want    bool
	}{
		"the cluster is gone":                   {},
		"the cluster is gone, installed once":   {chart: func(c *addonsv1.HelmChartProxy) { c.Spec.ReconcileStrategy = addonsv1.InstallOnce }},
		"not selected":                          {cluster: newCluster("a", func(c *clusterv1.Cluster) { c.Labels = nil })},
		"not selected, paused":                  {cluster: newCluster("a", func(c *clusterv1.Cluster) { c.Labels, c.Spec.Paused = nil, ptr.To(true) }), want: true},
		"selected, unknown to the cache so far": {cluster: newCluster("a", nil), want: true},
	} {
		var objects []ctrlclient.Object
		if tc.cluster != nil {
			objects = append(objects, tc.cluster)
		}
		got, err := Retained(t.Context(), newClient(t, objects...), newChart(tc.chart), r)
		if err != nil || got != tc.want {
			t.Errorf("%s: retained is %t, error %v, want %t", name, got, err, tc.want)
		}
	}
}

func TestClustersAreSortedAndOfOneNamespace(t *testing.T) {
	elsewhere := newCluster("a", func(c *clusterv1.Cluster) { c.Namespace = "other" })
	unlabeled := newCluster("d", func(c *clusterv1.Cluster) { c.Labels = nil })
	found, err := Clusters(t.Context(), newClient(t, newCluster("c", nil), newCluster("b", nil), elsewhere, unlabeled), newChart(nil))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, c := range found {
		names = append(names, c.Namespace+"/"+c.Name)
	}
	if diff := cmp.Diff([]string{"ns/b", "ns/c"}, names); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestReleasesAreGroupedByCluster(t *testing.T) {
	chart := newChart(nil)
	a, b := newCluster("a", nil), newCluster("b", nil)
	c := newClient(t, existing(t, chart, a), existing(t, chart, b))
	found, err := Releases(t.Context(), index.Releases{Reader: c}, ctrlclient.ObjectKeyFromObject(chart))
	if err != nil || len(found) != 2 || len(found["a"]) != 1 || found["b"][0].Spec.ClusterRef.Name != "b" {
		t.Errorf("releases %+v, error %v", found, err)
	}
}
