package history

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
)

func newClient(t *testing.T, objects ...ctrlclient.Object) ctrlclient.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(appsv1.AddToScheme(scheme), addonsv1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
}

func newChart(version string) *addonsv1.HelmChartProxy {
	return &addonsv1.HelmChartProxy{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "cni", UID: "u"},
		Spec:       addonsv1.HelmChartProxySpec{ChartName: "cni", Version: version},
	}
}

func digest(t *testing.T, spec addonsv1.HelmChartProxySpec) string {
	t.Helper()
	d, err := Digest(&spec)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// record records a version of the chart and returns the numbers and versions that are kept.
func record(t *testing.T, c ctrlclient.Client, version, good string) string {
	t.Helper()
	hcp := newChart(version)
	if err := (Keeper{Reader: c, Client: c}).Record(t.Context(), hcp, good); err != nil {
		t.Fatal(err)
	}
	all, err := List(t.Context(), c, hcp)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, r := range all {
		out = append(out, fmt.Sprintf("%d=%s", r.Number, r.Spec.Version))
	}
	return strings.Join(out, " ")
}

func TestDigestIgnoresOnlyTheClusterSelector(t *testing.T) {
	base := newChart("1").Spec
	for name, tc := range map[string]struct {
		change func(*addonsv1.HelmChartProxySpec)
		same   bool
	}{
		"nothing": {func(*addonsv1.HelmChartProxySpec) {}, true},
		"selector": {func(s *addonsv1.HelmChartProxySpec) {
			s.ClusterSelector = metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
		}, true},
		"version": {func(s *addonsv1.HelmChartProxySpec) { s.Version = "2" }, false},
		"values":  {func(s *addonsv1.HelmChartProxySpec) { s.ValuesTemplate = "a: b" }, false},
		"options": {func(s *addonsv1.HelmChartProxySpec) { s.Options.Wait = true }, false},
	} {
		changed := *base.DeepCopy()
		tc.change(&changed)
		if same := digest(t, base) == digest(t, changed); same != tc.same {
			t.Errorf("%s: same digest is %t, want %t", name, same, tc.same)
		}
	}
}

func TestRecordNumbersRevisionsAndReusesEarlierOnes(t *testing.T) {
	c := newClient(t)
	for _, tc := range []struct{ version, want string }{
		{"a", "1=a"},
		{"a", "1=a"},
		{"b", "2=b 1=a"},
		{"a", "3=a 2=b"}, // restored: the same revision gets the highest number
		{"c", "4=c 3=a 2=b"},
	} {
		if got := record(t, c, tc.version, ""); got != tc.want {
			t.Fatalf("after recording %q: %s, want %s", tc.version, got, tc.want)
		}
	}
}

func TestRecordPrunesAllButTheLastGoodRevision(t *testing.T) {
	c := newClient(t)
	good := digest(t, newChart("v00").Spec)
	got := ""
	for i := range Limit + 3 {
		got = record(t, c, fmt.Sprintf("v%02d", i), good)
	}
	if n := len(strings.Fields(got)); n != Limit+1 {
		t.Errorf("%d revisions are kept, want %d and the last good one: %s", n, Limit, got)
	}
	if !strings.HasSuffix(got, " 1=v00") {
		t.Errorf("the last good revision was deleted: %s", got)
	}
}

func TestListIgnoresRevisionsOfOtherOwners(t *testing.T) {
	c := newClient(t)
	record(t, c, "a", "")
	successor := newChart("a")
	successor.UID = "other"
	all, err := List(t.Context(), c, successor)
	if err != nil || len(all) != 0 {
		t.Errorf("revisions %v, error %v, want none of the predecessor", all, err)
	}
}

func TestListRejectsUnreadableRevision(t *testing.T) {
	c := newClient(t)
	record(t, c, "a", "")
	list := &appsv1.ControllerRevisionList{}
	if err := c.List(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	list.Items[0].Data.Raw = []byte(`["canary"]`)
	if err := c.Update(t.Context(), &list.Items[0]); err != nil {
		t.Fatal(err)
	}
	_, err := List(t.Context(), c, newChart("a"))
	if err == nil || strings.Contains(err.Error(), "canary") {
		t.Errorf("error %v, want one that does not quote the revision", err)
	}
}

func TestFindReturnsRevisionByDigest(t *testing.T) {
	c := newClient(t)
	record(t, c, "a", "")
	record(t, c, "b", "")
	r, err := Find(t.Context(), c, newChart("b"), digest(t, newChart("a").Spec))
	if err != nil || r.Spec.Version != "a" {
		t.Errorf("revision %+v, error %v", r, err)
	}
	if _, err := Find(t.Context(), c, newChart("b"), "unknown"); !errors.Is(err, ErrNoRevision) {
		t.Errorf("error %v, want ErrNoRevision", err)
	}
}

func TestRestore(t *testing.T) {
	selector := metav1.LabelSelector{MatchLabels: map[string]string{"stage": "prod"}}
	for name, tc := range map[string]struct {
		recorded []string
		number   int64
		want     string // the version, empty if it fails
	}{
		"the previous revision": {[]string{"a", "b", "c"}, 0, "b"},
		"a revision by number":  {[]string{"a", "b", "c"}, 1, "a"},
		"the only revision":     {[]string{"a"}, 0, ""},
		"no revision":           {nil, 0, ""},
		"an unknown revision":   {[]string{"a", "b"}, 9, ""},
	} {
		t.Run(name, func(t *testing.T) {
			hcp := newChart("c")
			hcp.Spec.ClusterSelector, hcp.Spec.Rollout = selector, &addonsv1.Rollout{OnFailure: "Pause"}
			c := newClient(t, hcp)
			for _, version := range tc.recorded {
				record(t, c, version, "")
			}
			restored, err := Restore(context.Background(), c, hcp, tc.number)
			if tc.want == "" {
				if !errors.Is(err, ErrNoRevision) {
					t.Fatalf("restored %+v, error %v, want ErrNoRevision", restored, err)
				}
				return
			}
			if err != nil || restored.Spec.Version != tc.want || hcp.Spec.Version != tc.want {
				t.Fatalf("version %q, restored %+v, error %v, want %q", hcp.Spec.Version, restored, err, tc.want)
			}
			if hcp.Spec.ClusterSelector.MatchLabels["stage"] != "prod" || hcp.Spec.Rollout == nil {
				t.Errorf("selector or rollout changed: %+v", hcp.Spec)
			}
		})
	}
}

func TestNameFitsAnyHelmChartProxy(t *testing.T) {
	for _, hcp := range []string{"cni", strings.Repeat("x", 253)} {
		got := name(hcp, "0123456789abcdef")
		if len(got) > 253 || !strings.HasSuffix(got, "-0123456789abcdef") {
			t.Errorf("name %q has %d characters", got, len(got))
		}
	}
}
