package fleet

import (
	"strings"
	"testing"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
)

func TestEachClusterGetsAKustomization(t *testing.T) {
	w := newWorld(t)
	files := repository{}.with("dev", "prod")
	files[dirs+"dev/addons/a.yaml"], files[dirs+"dev/packages/p.yaml"] = "a: 1", "p: 1"
	w.push(files)
	w.expectNames("after the commit", "dev, dev.addons, dev.packages, prod")
	got := w.kustomizations()
	dev := got["dev"].Spec
	want := kustomizev1.KustomizationSpec{
		Path: "./" + dirs + "dev", Prune: true, DeletionPolicy: "Orphan", ServiceAccountName: "drover-gitops", TargetNamespace: w.ns,
		SourceRef: kustomizev1.CrossNamespaceSourceReference{Kind: "ExternalArtifact", Name: "dev"},
		Interval:  dev.Interval, RetryInterval: dev.RetryInterval, Timeout: dev.Timeout,
	}
	if diff := cmp.Diff(want, dev); diff != "" {
		t.Errorf("Kustomization of the cluster (-want +got):\n%s", diff)
	}
	if got["dev"].Namespace != w.ns || got["dev"].Labels[anywherev1.GitClusterLabel] != "dev" {
		t.Errorf("namespace and labels are %s, %v", got["dev"].Namespace, got["dev"].Labels)
	}
	packages := got["dev.packages"].Spec
	if packages.Path != "./"+dirs+"dev/packages" || packages.DependsOn[0].Name != "dev.addons" || got["dev.addons"].Spec.DependsOn[0].Name != "dev" {
		t.Errorf("packages have path %s and follow %v", packages.Path, packages.DependsOn)
	}
	binding := &rbacv1.RoleBinding{}
	w.must(w.Get(t.Context(), client.ObjectKey{Namespace: w.ns, Name: anywherev1.GitAccount}, binding))
	subject := rbacv1.Subject{Kind: "ServiceAccount", Namespace: w.ns, Name: anywherev1.GitAccount}
	if binding.RoleRef.Name != creatorRole || binding.Subjects[0] != subject {
		t.Errorf("the account has role %s for %v", binding.RoleRef.Name, binding.Subjects)
	}
	w.must(w.Get(t.Context(), client.ObjectKey{Namespace: w.ns, Name: anywherev1.GitAccount}, &corev1.ServiceAccount{}))
}

func TestAnUnchangedRepositoryIsNeitherDownloadedNorWritten(t *testing.T) {
	w := newWorld(t)
	w.push(repository{}.with("dev"))
	before := w.versions()
	w.reconcile()
	w.reconcile()
	if w.versions() != before || w.downloads != 1 {
		t.Errorf("%d downloads, versions %s, before %s", w.downloads, w.versions(), before)
	}
}

func TestASuspendedRepositoryLeavesEverythingAsItIs(t *testing.T) {
	w := newWorld(t)
	w.push(repository{}.with("dev"))
	before := w.versions()
	w.suspend()
	w.push(repository{}.with("prod"))
	if w.versions() != before {
		t.Errorf("versions %s, before %s", w.versions(), before)
	}
}

func TestABrokenSpecAffectsOnlyItsCluster(t *testing.T) {
	w := newWorld(t)
	w.push(repository{}.with("a", "b"))
	files := repository{}.with("a", "b", "c", "d")
	files[dirs+"b/eksa-cluster.yaml"] += "\n---\na: ["
	files[dirs+"d/eksa-cluster.yaml"] = strings.Replace(specOf("d"), "count: 1", "count: -1", 1)
	w.push(files)
	w.expectNames("with two broken specs", "a, b, c")
	if got := strings.Join(w.report().Problems, "\n"); !strings.Contains(got, dirs+"b/") || !strings.Contains(got, dirs+"d/") || strings.Contains(got, dirs+"a/") {
		t.Errorf("problems are:\n%s", got)
	}
}

func TestAChangedKustomizationIsRestored(t *testing.T) {
	w := newWorld(t)
	w.push(repository{}.with("dev"))
	k := w.kustomizations()["dev"]
	k.Spec.ServiceAccountName, k.Spec.Suspend = "default", true
	w.must(w.Update(t.Context(), &k))
	w.reconcile()
	if got := w.kustomizations()["dev"].Spec; got.ServiceAccountName != anywherev1.GitAccount || !got.Suspend {
		t.Errorf("account %q, suspended %t", got.ServiceAccountName, got.Suspend)
	}
}

func TestAKustomizationOfSomebodyElseIsLeftAlone(t *testing.T) {
	w := newWorld(t)
	other := placement{source: client.ObjectKey{Namespace: "x", Name: "y"}, entry: entry{key: client.ObjectKey{Name: "dev"}}, namespace: w.ns}.kustomizations()[0]
	other.Labels = nil
	w.must(w.Create(t.Context(), other))
	before := w.versions()
	w.push(repository{}.with("dev"))
	if w.versions() != before || !strings.Contains(strings.Join(w.report().Problems, ""), "Drover didn't create it") {
		t.Errorf("versions %s, before %s; problems %q", w.versions(), before, w.report().Problems)
	}
}

func TestNamespacesThatAreNotConnectedGetNothing(t *testing.T) {
	w := newWorld(t)
	files := repository{}.with("dev")
	files[dirs+"other/a.yaml"] = strings.ReplaceAll(specOf("other"), "team-a", "default")
	w.push(files)
	w.expectNames("with a cluster for another namespace", "dev")
	w.expectEvents(`has a cluster for namespace "default", which has no FluxConfig`)
	list := &kustomizev1.KustomizationList{}
	w.must(w.List(t.Context(), list, client.InNamespace("default")))
	if len(list.Items) > 0 {
		t.Errorf("the other namespace has %d Kustomizations", len(list.Items))
	}
	w.reconcile()
	w.expectEvents()
}

func TestDisconnectingKeepsClusters(t *testing.T) {
	w := newWorld(t)
	w.push(repository{}.with("dev"))
	w.finalize()
	w.connect()
	w.reconcile()
	w.expectNames("without a connection", "dev deleted with policy Orphan")
}

func TestManagementClustersAreAppliedByTheirOwnAccount(t *testing.T) {
	w := newWorld(t)
	files := repository{root + "/eksa-system/eksa-cluster.yaml": specOf("mgmt"), root + "/eksa-system/kustomization.yaml": "resources: [eksa-cluster.yaml]\n"}
	w.push(files)
	if got := w.kustomizations()["mgmt"].Namespace; got != w.ns {
		t.Errorf("a spec without a Cluster is applied in namespace %q", got)
	}
	w.create("mgmt", anywherev1.Ready)
	w.reconcile()
	k := &kustomizev1.Kustomization{}
	w.must(w.Get(t.Context(), client.ObjectKey{Namespace: w.system, Name: "mgmt"}, k))
	binding := &rbacv1.RoleBinding{}
	w.must(w.Get(t.Context(), client.ObjectKey{Namespace: w.ns, Name: anywherev1.GitAccount + "-admin"}, binding))
	if k.Spec.TargetNamespace != w.ns || binding.RoleRef.Name != adminRole || binding.Subjects[0].Namespace != w.system {
		t.Errorf("target namespace %q, role %s for %v", k.Spec.TargetNamespace, binding.RoleRef.Name, binding.Subjects)
	}
}
