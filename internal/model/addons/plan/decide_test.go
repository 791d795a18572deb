package plan

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	"github.com/drover-dev/drover/internal/model/addons/desired"
)

func TestDecideRelease(t *testing.T) {
	chart := &addonsv1.HelmChartProxy{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "cni", UID: "u"}}
	named := desired.Release{Name: "x", Spec: addonsv1.HelmReleaseProxySpec{
		ChartName: "c", RepoURL: "https://r", ReleaseNamespace: "default", ReleaseName: "n", Version: "1",
	}}
	made := named
	made.Generated, made.Spec.ReleaseName = true, "made-up"
	for _, tc := range []struct {
		name   string
		first  desired.Release // what the release was made for
		change func(*addonsv1.HelmReleaseProxy)
		want   desired.Release
		verb   Verb
		called string // the release's name afterwards
	}{
		{name: "nothing has changed", first: named, want: named, verb: Keep},
		{name: "a version", first: named, want: with(named, func(s *addonsv1.HelmReleaseProxySpec) { s.Version = "2" }), verb: Update, called: "n"},
		{name: "on its way out", first: named, change: func(r *addonsv1.HelmReleaseProxy) { r.DeletionTimestamp = ptr.To(metav1.Now()) }, want: named, verb: Await},
		{name: "a made-up name stays", first: with(made, func(s *addonsv1.HelmReleaseProxySpec) { s.ReleaseName = "c-1700000000" }), want: made, verb: Keep},
		{name: "a name is made up later", first: named, change: func(r *addonsv1.HelmReleaseProxy) { r.Spec.ReleaseName = "" }, want: made, verb: Update, called: "made-up"},
		{name: "a name in place of a made-up one", first: made, want: named, verb: Recreate},
		{name: "the made-up name is given", first: made, want: with(named, func(s *addonsv1.HelmReleaseProxySpec) { s.ReleaseName = "made-up" }), verb: Update, called: "made-up"},
		{name: "another name", first: named, want: with(named, func(s *addonsv1.HelmReleaseProxySpec) { s.ReleaseName = "m" }), verb: Recreate},
		{name: "no name any more", first: named, want: made, verb: Recreate},
		{name: "another chart", first: named, want: with(named, func(s *addonsv1.HelmReleaseProxySpec) { s.ChartName = "d" }), verb: Recreate},
		{name: "another repository", first: named, want: with(named, func(s *addonsv1.HelmReleaseProxySpec) { s.RepoURL = "https://s" }), verb: Recreate},
		{name: "another namespace", first: named, want: with(named, func(s *addonsv1.HelmReleaseProxySpec) { s.ReleaseNamespace = "m" }), verb: Recreate},
		{name: "the namespace by its name", first: named, change: func(r *addonsv1.HelmReleaseProxy) { r.Spec.ReleaseNamespace = "" }, want: named, verb: Update, called: "n"},
		{name: "another tool", first: named, want: with(named, func(s *addonsv1.HelmReleaseProxySpec) { s.Tool = addonsv1.Manifests }), verb: Recreate},
		{name: "the tool by its name", first: named, want: with(named, func(s *addonsv1.HelmReleaseProxySpec) { s.Tool = addonsv1.Helm }), verb: Update, called: "n"},
		{name: "installed once", first: named, change: func(r *addonsv1.HelmReleaseProxy) {
			r.Spec.ReconcileStrategy = addonsv1.InstallOnce
			r.Annotations[addonsv1.InstalledAnnotation] = "true"
		}, want: with(named, func(s *addonsv1.HelmReleaseProxySpec) { s.ChartName = "d" }), verb: Keep},
		{name: "owned by another object", first: named, change: func(r *addonsv1.HelmReleaseProxy) {
			r.OwnerReferences = []metav1.OwnerReference{{Kind: ChartKind, Name: "other", Controller: ptr.To(true)}}
		}, want: named, verb: Reject},
		{name: "owned by its predecessor", first: named, change: func(r *addonsv1.HelmReleaseProxy) { r.OwnerReferences[0].UID = "old" }, want: named, verb: Update, called: "n"},
		{name: "without an owner", first: named, change: func(r *addonsv1.HelmReleaseProxy) { r.OwnerReferences = nil }, want: named, verb: Update, called: "n"},
		{name: "changed by a user", first: named, change: func(r *addonsv1.HelmReleaseProxy) { r.Spec.Values = "mine" }, want: named, verb: Update, called: "n"},
		{name: "labeled by a user", first: named, change: func(r *addonsv1.HelmReleaseProxy) { r.Labels["mine"] = "yes" }, want: named, verb: Keep},
	} {
		t.Run(tc.name, func(t *testing.T) {
			there := Decide(chart, nil, tc.first)
			if there.Verb != Create {
				t.Fatalf("with nothing there it is %q", there.Verb)
			}
			if tc.change != nil {
				tc.change(there.Object)
			}
			before := there.Object.DeepCopy()
			got := Decide(chart, there.Object, tc.want)
			if got.Verb != tc.verb {
				t.Errorf("it is %q, want %q", got.Verb, tc.verb)
			}
			if !equal(before, there.Object) {
				t.Error("an object of the cache was changed, want a copy")
			}
			if got.Object != nil && got.Object.Spec.ReleaseName != tc.called {
				t.Errorf("its name is %q, want %q", got.Object.Spec.ReleaseName, tc.called)
			}
		})
	}
}

func with(r desired.Release, change func(*addonsv1.HelmReleaseProxySpec)) desired.Release {
	r.Spec = *r.Spec.DeepCopy()
	change(&r.Spec)
	return r
}
