package release

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/model/delegation"
)

// onlyDeployer allows one account to get every Cluster.
type onlyDeployer struct{}

func (onlyDeployer) Create(_ context.Context, o client.Object, _ ...client.CreateOption) error {
	review, ok := o.(*authorizationv1.SubjectAccessReview)
	if !ok {
		return errors.New("not a review")
	}
	review.Status.Allowed = review.Spec.User == "system:serviceaccount:eksa-packages-a:deployer" &&
		review.Spec.ResourceAttributes.Group == "cluster.x-k8s.io" && review.Spec.ResourceAttributes.Resource == "clusters"
	return nil
}

// packagesOf returns a client with Packages for the clusters a, of a spec, and b, and their
// PackageBundleControllers.
func packagesOf(t *testing.T) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{packagesv1.AddToScheme, addonsv1.AddToScheme, clusterv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	pack := func(cluster, name string, target *packagesv1.PackageTarget) *packagesv1.Package {
		return &packagesv1.Package{
			ObjectMeta: metav1.ObjectMeta{Namespace: packagesv1.NamespacePrefix + cluster, Name: name, UID: types.UID(name)},
			Status:     packagesv1.PackageStatus{Target: target},
		}
	}
	bundles := func(cluster, namespace string) *packagesv1.PackageBundleController {
		return &packagesv1.PackageBundleController{
			ObjectMeta: metav1.ObjectMeta{Namespace: packagesv1.Namespace, Name: cluster},
			Spec:       packagesv1.PackageBundleControllerSpec{ClusterNamespace: namespace},
		}
	}
	on := func(cluster, uid string) *packagesv1.PackageTarget {
		return &packagesv1.PackageTarget{Cluster: cluster, ClusterNamespace: "eksa-system", ClusterUID: uid}
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(
		pack("a", "web", on("a", "1")), pack("a", "new", nil), pack("b", "new", nil), pack("a", "deleted", on("a", "0")), pack("a", "earlier", on("a", "")),
		pack("c", "gone", on("c", "1")), bundles("a", "eksa-system"), bundles("b", ""),
		&clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{
			Namespace: "eksa-system", Name: "a", Annotations: map[string]string{anywherev1.ClusterUIDAnnotation: "1"}, CreationTimestamp: metav1.NewTime(noon),
		}},
	).Build()
}

// TestReleasesOfOthersAreDenied refers to Clusters of other namespaces, with and without a Package
// that seems to own the release. Anybody can read the UID of a Package.
func TestReleasesOfOthersAreDenied(t *testing.T) {
	for name, tc := range map[string]struct {
		// namespace of the release is eksa-packages-<cluster>.
		cluster, name, owner, uid string
		age                       time.Duration
		ref, account              string
		denied, waits, ofPackage  bool
	}{
		"same namespace":                  {cluster: "a", name: "x", ref: "eksa-packages-a/a"},
		"another namespace":               {cluster: "a", name: "x", ref: "eksa-system/a", denied: true},
		"an account that may":             {cluster: "a", name: "x", ref: "eksa-system/a", account: "deployer"},
		"an account that may not":         {cluster: "a", name: "x", ref: "eksa-system/a", account: "nobody", denied: true},
		"an account of another namespace": {cluster: "b", name: "x", ref: "eksa-system/a", account: "deployer", denied: true},
		"the release of a Package":        {cluster: "a", name: "web", owner: "web", uid: "web", ref: "eksa-system/a", ofPackage: true},
		"a deleted Cluster":               {cluster: "a", name: "deleted", owner: "deleted", uid: "deleted", ref: "eksa-system/a", denied: true},
		"a Cluster that is gone":          {cluster: "c", name: "gone", owner: "gone", uid: "gone", ref: "eksa-system/c", ofPackage: true},
		"an earlier version":              {cluster: "a", name: "earlier", owner: "earlier", uid: "earlier", ref: "eksa-system/a", ofPackage: true},
		"an earlier version, too old":     {cluster: "a", name: "earlier", owner: "earlier", uid: "earlier", ref: "eksa-system/a", age: time.Hour, denied: true},
		"another name":                    {cluster: "a", name: "x", owner: "web", uid: "web", ref: "eksa-system/a", denied: true},
		"another UID":                     {cluster: "a", name: "web", owner: "web", uid: "old", ref: "eksa-system/a", denied: true},
		"another Cluster":                 {cluster: "a", name: "web", owner: "web", uid: "web", ref: "eksa-system/prod", denied: true},
		"a Cluster of the same name":      {cluster: "a", name: "web", owner: "web", uid: "web", ref: "theirs/a", denied: true},
		"a Package that does not exist":   {cluster: "a", name: "gone", owner: "gone", uid: "gone", ref: "eksa-system/a", denied: true},
		"a new Package":                   {cluster: "a", name: "new", owner: "new", uid: "new", ref: "eksa-system/a", ofPackage: true},
		"a new Package, another Cluster":  {cluster: "a", name: "new", owner: "new", uid: "new", ref: "eksa-system/b", denied: true},
		"a new Package, another tenant":   {cluster: "a", name: "new", owner: "new", uid: "new", ref: "theirs/a", denied: true},
		"no namespace, the system's":      {cluster: "b", name: "new", owner: "new", uid: "new", ref: "eksa-system/b", ofPackage: true},
		"no namespace, another one":       {cluster: "b", name: "new", owner: "new", uid: "new", ref: "theirs/b", waits: true},
	} {
		t.Run(name, func(t *testing.T) {
			r := &addonsv1.HelmReleaseProxy{ObjectMeta: metav1.ObjectMeta{Namespace: packagesv1.NamespacePrefix + tc.cluster, Name: tc.name}}
			if tc.owner != "" {
				owner := &packagesv1.Package{ObjectMeta: metav1.ObjectMeta{Name: tc.owner, UID: types.UID(tc.uid)}}
				r.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(owner, packagesv1.GroupVersion.WithKind("Package"))}
			}
			r.CreationTimestamp = metav1.NewTime(noon.Add(-tc.age))
			r.Spec.ServiceAccountName = tc.account
			r.Spec.ClusterRef.Namespace, r.Spec.ClusterRef.Name, _ = strings.Cut(tc.ref, "/")
			policy := delegation.New(delegation.Options{Reviews: onlyDeployer{}, Clock: clocktesting.NewFakePassiveClock(time.Unix(1e9, 0))})
			v := &visit{Controller: &Controller{Client: packagesOf(t), Policy: policy}, release: r}
			f := facts{}
			if err := v.gatherPermission(t.Context(), &f); err != nil {
				t.Fatal(err)
			}
			if f.denied != tc.denied || f.ofPackage != tc.ofPackage || (f.clusterProblem != nil) != (tc.denied || tc.waits) {
				t.Errorf("denied %t, of a Package %t, problem %+v", f.denied, f.ofPackage, f.clusterProblem)
			}
		})
	}
}
