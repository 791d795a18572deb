package bootstrap_test

import (
	"context"
	"net/http"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/model/backup/objects"
	"github.com/drover-dev/drover/internal/operate/bootstrap"
	"github.com/drover-dev/drover/internal/test/kubetest"
)

// TestRestoredClustersArePausedUntilResumed restores a cluster from a backup of a plane, is killed
// after ever more writes, and continues.
func TestRestoredClustersArePausedUntilResumed(t *testing.T) {
	from, to := twoSides(t)
	for _, namespace := range []string{system, team, packagesv1.Namespace, packagesv1.NamespacePrefix + "r", packagesv1.NamespacePrefix + "s"} {
		must(t, client.IgnoreAlreadyExists(from.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})))
	}
	shared := sso()
	if err := from.Create(t.Context(), shared); err == nil {
		t.Cleanup(func() { _ = from.Delete(context.Background(), shared) })
	}
	a, b := from.newMovedObjects("r"), from.newMovedObjects("s")
	set, err := objects.Collect(t.Context(), from)
	must(t, err)
	data, err := set.Encode()
	must(t, err)
	set, err = objects.Decode(data)
	must(t, err)

	must(t, bootstrap.RestoreNamespaces(t.Context(), set, to.Config))
	killed := 0
	for after := int64(1); ; after += 1 + after/2 {
		cfg := rest.CopyConfig(to.Config)
		ctx, end := context.WithCancel(t.Context())
		kill := &killer{end: end}
		kill.left.Store(after)
		cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return &killing{next, kill} })
		err := bootstrap.Restore(ctx, set, cfg, "r")
		end()
		hold, holdErr := bootstrap.HoldOf(t.Context(), to.Config, "r")
		must(t, holdErr)
		if err == nil {
			if hold != bootstrap.Restored {
				t.Errorf("a complete restore has hold %q", hold)
			}
			break
		}
		if hold == bootstrap.Restored && after < 8 {
			t.Errorf("a restore that was killed after %d writes is complete", after)
		}
		killed++
	}
	if killed < 4 {
		t.Errorf("only %d restores were killed: the test does not see writes", killed)
	}
	for _, o := range a.objects {
		if !to.has(o) {
			t.Errorf("%T %s was not restored", o, o.GetName())
		}
		if !from.has(o) {
			t.Errorf("%T %s was deleted from where the backup was made", o, o.GetName())
		}
	}
	for _, o := range b.objects {
		if to.has(o) {
			t.Errorf("%T %s of another cluster was restored", o, o.GetName())
		}
	}

	t.Log("nothing acts on it yet")
	cluster, ours := &clusterv1.Cluster{}, &anywherev1.Cluster{}
	must(t, to.Get(t.Context(), client.ObjectKeyFromObject(a.cluster), cluster))
	must(t, to.Get(t.Context(), client.ObjectKey{Namespace: team, Name: "r"}, ours))
	if !ptr.Deref(cluster.Spec.Paused, false) || !ours.IsPaused() {
		t.Error("it is not paused")
	}
	if got := ours.Annotations[anywherev1.ClusterUIDAnnotation]; got != a.uid {
		t.Errorf("its identity is %q, want %q", got, a.uid)
	}
	release := &addonsv1.HelmReleaseProxy{}
	must(t, to.Get(t.Context(), client.ObjectKey{Namespace: system, Name: "r-cni"}, release))
	chart := &addonsv1.HelmChartProxy{}
	must(t, to.Get(t.Context(), client.ObjectKey{Namespace: system, Name: "r-cni"}, chart))
	if len(release.OwnerReferences) != 1 || release.OwnerReferences[0].UID != chart.UID {
		t.Errorf("owners %v, want HelmChartProxy %s", release.OwnerReferences, chart.UID)
	}

	t.Log("once resumed, a restore leaves it alone")
	must(t, bootstrap.Resume(t.Context(), to.Config, "r"))
	before := cluster.DeepCopy()
	must(t, to.Get(t.Context(), client.ObjectKeyFromObject(a.cluster), before))
	must(t, bootstrap.Restore(t.Context(), set, to.Config, "r"))
	must(t, to.Get(t.Context(), client.ObjectKeyFromObject(a.cluster), cluster))
	if len(to.paused()) > 0 || cluster.ResourceVersion != before.ResourceVersion {
		t.Errorf("it was changed: %d objects are paused", len(to.paused()))
	}

	t.Log("what no cluster owns comes back, and what exists stays")
	must(t, bootstrap.RestoreShared(t.Context(), set, to.Config, "mgmt"))
	if !to.has(sso()) {
		t.Error("a shared config was not restored")
	}
	for _, o := range b.objects {
		if _, isConfig := o.(*anywherev1.DockerDatacenterConfig); isConfig || o.GetNamespace() == packagesv1.NamespacePrefix+"s" {
			continue // Nothing says whose it is.
		}
		if to.has(o) {
			t.Errorf("%T %s of a cluster that is not restored is there", o, o.GetName())
		}
	}
}

// TestRestoredNamespacesMayUseTheirMachines restores who may use credentials that the new
// management cluster has from its own creation.
func TestRestoredNamespacesMayUseTheirMachines(t *testing.T) {
	to := newSide(t, kubetest.SharedWithoutWebhooks(t))
	must(t, client.IgnoreAlreadyExists(to.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: system}})))
	secret := func(name, namespaces, token string) *corev1.Secret {
		s := &corev1.Secret{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: name}}
		s.StringData = map[string]string{"token": token}
		if namespaces != "" {
			s.Annotations = map[string]string{anywherev1.CredentialsNamespacesAnnotation: namespaces}
		}
		return s
	}
	var set objects.Set
	for _, name := range []string{"opened", "decided", "absent"} {
		fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(secret(name, team, "old"))
		must(t, err)
		set = append(set, &unstructured.Unstructured{Object: fields})
	}
	for _, s := range []*corev1.Secret{secret("opened", "", "new"), secret("decided", "others", "new")} {
		must(t, to.Create(t.Context(), s))
		t.Cleanup(func() { _ = to.Delete(context.Background(), s) })
	}

	for range 2 {
		must(t, bootstrap.RestoreNamespaces(t.Context(), set, to.Config))
	}
	for name, want := range map[string]string{"opened": team, "decided": "others"} {
		live := &corev1.Secret{}
		must(t, to.Get(t.Context(), client.ObjectKey{Namespace: system, Name: name}, live))
		if got := live.Annotations[anywherev1.CredentialsNamespacesAnnotation]; got != want || string(live.Data["token"]) != "new" {
			t.Errorf("Secret %s is for namespaces %q with token %s, want %q with the new token", name, got, live.Data["token"], want)
		}
	}
	if to.has(secret("absent", "", "")) {
		t.Error("credentials were restored before their cluster")
	}
}
