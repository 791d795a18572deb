package chart

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	infrav1 "github.com/drover-dev/drover/api/infrastructure/v1beta1"
	"github.com/drover-dev/drover/internal/model/addons/plan"
)

func TestEverySelectedClusterGetsARelease(t *testing.T) {
	w := newWorld(t)
	w.cluster("b", "cni=cilium")
	w.cluster("a", "cni=cilium")
	w.cluster("c", "cni=other")
	w.chart(func(c *addonsv1.HelmChartProxy) {
		c.Spec.ClusterSelector = metav1.LabelSelector{MatchLabels: map[string]string{"cni": "cilium"}}
		c.Labels = map[string]string{clusterv1.WatchLabel: "mine"}
	})
	c := w.run()
	if got := w.all(); len(got) != 2 || got["a"] == nil || got["b"] == nil {
		t.Fatalf("releases: %v", got)
	}
	r := w.release("a")
	want := addonsv1.HelmReleaseProxySpec{
		ClusterRef: corev1.ObjectReference{APIVersion: "cluster.x-k8s.io/v1beta2", Kind: "Cluster", Namespace: w.ns, Name: "a"},
		ChartName:  "cilium", RepoURL: "https://charts.example.com", ReleaseNamespace: "kube-system", Values: "cluster: a",
		ReleaseName: r.Spec.ReleaseName,
		Options: addonsv1.HelmOptions{
			Install: addonsv1.HelmInstallOptions{CreateNamespace: ptr.To(true)}, Upgrade: addonsv1.HelmUpgradeOptions{MaxHistory: ptr.To(10)},
		},
	}
	if diff := cmp.Diff(want, r.Spec); diff != "" {
		t.Errorf("spec (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{
		clusterv1.ClusterNameLabel: "a", addonsv1.HelmChartProxyLabel: "cni", clusterv1.WatchLabel: "mine",
	}, r.Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{addonsv1.GeneratedNameAnnotation: "true"}, r.Annotations); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
	if owner := metav1.GetControllerOf(r); owner == nil || owner.UID != c.UID || !*owner.BlockOwnerDeletion {
		t.Errorf("owner: %+v", owner)
	}
	if diff := cmp.Diff([]string{addonsv1.HelmReleaseProxyFinalizer}, r.Finalizers); diff != "" {
		t.Errorf("finalizers (-want +got):\n%s", diff)
	}
	w.has(c, addonsv1.SpecsUpToDate, "False HelmReleaseProxySpecsUpdating: Waiting for the controller to observe HelmReleaseProxies cilium-a-")
	w.has(c, addonsv1.ProxiesReady, "Unknown")
	w.setReleaseState("a", true)
	w.setReleaseState("b", true)
	c = w.run()
	w.has(c, addonsv1.SpecsUpToDate, "True UpToDate: ")
	w.has(c, addonsv1.ProxiesReady, "True InfoReported:  (sources: HelmReleaseProxy/cilium-a-")
	w.has(c, clusterv1.ReadyCondition, "True InfoReported: ")
	if c.Status.ObservedGeneration != c.Generation || len(c.Finalizers) != 1 || c.Finalizers[0] != addonsv1.HelmChartProxyFinalizer {
		t.Errorf("observed generation %d of %d, finalizers %v", c.Status.ObservedGeneration, c.Generation, c.Finalizers)
	}
	w.quiet()
}

func TestChartWithoutClustersIsReady(t *testing.T) {
	w := newWorld(t)
	w.chart(nil)
	c := w.run()
	w.has(c, addonsv1.ProxiesReady, "True Ready: ")
	w.has(c, clusterv1.ReadyCondition, "True InfoReported")
	w.quiet()
}

func TestChangedOptionsCredentialsAndTLSReachTheRelease(t *testing.T) {
	w := newWorld(t)
	w.cluster("a")
	w.chart(nil)
	w.run()
	for _, tc := range []struct {
		name   string
		change func(*addonsv1.HelmChartProxySpec)
		has    func(addonsv1.HelmReleaseProxySpec) bool
	}{
		{
			"options", func(s *addonsv1.HelmChartProxySpec) { s.Options.SkipCRDs = true },
			func(s addonsv1.HelmReleaseProxySpec) bool { return s.Options.SkipCRDs },
		},
		{"credentials", func(s *addonsv1.HelmChartProxySpec) {
			s.Credentials = &addonsv1.Credentials{Secret: corev1.SecretReference{Name: "login"}, Key: "auth"}
		}, func(s addonsv1.HelmReleaseProxySpec) bool {
			return s.Credentials != nil && s.Credentials.Key == "auth" && s.Credentials.Secret.Namespace == w.ns
		}},
		{"TLS", func(s *addonsv1.HelmChartProxySpec) {
			s.TLSConfig = &addonsv1.TLSConfig{CASecretRef: &corev1.SecretReference{Name: "ca"}}
		}, func(s addonsv1.HelmReleaseProxySpec) bool {
			return s.TLSConfig != nil && s.TLSConfig.CASecretRef.Namespace == w.ns
		}},
		{
			"no credentials any more", func(s *addonsv1.HelmChartProxySpec) { s.Credentials = nil },
			func(s addonsv1.HelmReleaseProxySpec) bool { return s.Credentials == nil },
		},
		{
			"emptied values", func(s *addonsv1.HelmChartProxySpec) { s.ValuesTemplate = "" },
			func(s addonsv1.HelmReleaseProxySpec) bool { return s.Values == "" },
		},
		{
			"drift", func(s *addonsv1.HelmChartProxySpec) { s.Drift = &addonsv1.Drift{Mode: addonsv1.DriftCorrect} },
			func(s addonsv1.HelmReleaseProxySpec) bool { return s.Drift != nil },
		},
	} {
		before := w.release("a")
		w.change(func(c *addonsv1.HelmChartProxy) { tc.change(&c.Spec) })
		w.run()
		after := w.release("a")
		if !tc.has(after.Spec) || after.UID != before.UID {
			t.Errorf("%s did not arrive: %+v", tc.name, after.Spec)
		}
	}
	w.quiet()
}

func TestFalseAndZeroValuesAreKept(t *testing.T) {
	w := newWorld(t)
	w.cluster("a")
	w.chart(func(c *addonsv1.HelmChartProxy) {
		c.Spec.Options.Install.CreateNamespace, c.Spec.Options.Upgrade.MaxHistory = ptr.To(false), ptr.To(0)
	})
	w.run()
	o := w.release("a").Spec.Options
	if ptr.Deref(o.Install.CreateNamespace, true) || ptr.Deref(o.Upgrade.MaxHistory, 10) != 0 {
		t.Errorf("options: %+v", o)
	}
	w.quiet()
}

func TestMatchingClustersAreSortedAndWrittenOnce(t *testing.T) {
	w := newWorld(t)
	names := []string{"f", "b", "h", "a", "d", "g", "c", "e"}
	for _, name := range names {
		w.cluster(name)
	}
	w.chart(nil)
	c := w.run()
	var got []string
	for _, ref := range c.Status.MatchingClusters {
		got = append(got, ref.Name)
	}
	if diff := cmp.Diff([]string{"a", "b", "c", "d", "e", "f", "g", "h"}, got); diff != "" {
		t.Errorf("matchingClusters (-want +got):\n%s", diff)
	}
	w.quiet()
	w.quiet()
}

func TestFailingClusterDoesNotBlockOthers(t *testing.T) {
	w := newWorld(t)
	w.cluster("a", "bad=yes")
	w.cluster("b")
	w.cluster("c")
	w.chart(func(c *addonsv1.HelmChartProxy) {
		c.Spec.ValuesTemplate = `{{ if hasKey .Cluster.metadata "labels" }}{{ fail "no such label, please" }}{{ end }}x: y`
	})
	c := w.run()
	if got := w.all(); got["a"] != nil || got["b"] == nil || got["c"] == nil {
		t.Errorf("releases: %v", got)
	}
	w.has(c, addonsv1.SpecsUpToDate, "False ValueParsingFailed: Cluster a: rendering values: valuesTemplate:1:")
	if got := condition(c, addonsv1.SpecsUpToDate); !strings.Contains(got, "no such label, please") {
		t.Errorf("condition is %q", got)
	}
	w.has(c, clusterv1.ReadyCondition, "False IssuesReported")
	w.quiet()
}

func TestMissingReferenceBlocksOnlyItsCluster(t *testing.T) {
	w := newWorld(t)
	with := w.cluster("a")
	with.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{APIGroup: infrav1.GroupVersion.Group, Kind: "PacketCluster", Name: "a"}
	w.must(w.Update(t.Context(), with))
	w.cluster("b")
	w.chart(func(c *addonsv1.HelmChartProxy) {
		c.Spec.ValuesTemplate = `{{ with .InfraCluster }}metro: {{ .spec.metro }}{{ end }}`
	})
	c, _, err := w.try()
	if err == nil {
		t.Error("nothing would make it look again")
	}
	w.has(c, addonsv1.SpecsUpToDate, `False ValueParsingFailed: Cluster a: waiting for PacketCluster "a", which a template refers to`)
	if w.all()["b"] == nil {
		t.Error("the other cluster has no release")
	}
	w.must(w.Create(t.Context(), &infrav1.PacketCluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "a"}, Spec: infrav1.PacketClusterSpec{ProjectID: "p", Metro: "da"},
	}))
	w.run()
	if got := w.release("a").Spec.Values; got != "metro: da" {
		t.Errorf("values are %q", got)
	}
}

func TestUnreferencedObjectsAreNotRequired(t *testing.T) {
	w := newWorld(t)
	a := w.cluster("a")
	a.Spec.ControlPlaneRef = clusterv1.ContractVersionedObjectReference{APIGroup: "controlplane.cluster.x-k8s.io", Kind: "KubeadmControlPlane", Name: "none"}
	w.must(w.Update(t.Context(), a))
	w.chart(nil)
	w.run()
	w.release("a")
}

func TestWatchLabelAddedLaterReachesReleases(t *testing.T) {
	w := newWorld(t)
	w.cluster("a")
	w.chart(nil)
	w.run()
	w.change(func(c *addonsv1.HelmChartProxy) { c.Labels = map[string]string{clusterv1.WatchLabel: "blue"} })
	w.run()
	if got := w.release("a").Labels[clusterv1.WatchLabel]; got != "blue" {
		t.Errorf("watch label is %q", got)
	}
}

func TestWatchFilterSkipsUnlabeledObjects(t *testing.T) {
	w := newWorld(t)
	w.WatchFilter = "blue"
	w.cluster("a")
	w.chart(nil)
	if c := w.run(); len(w.all()) != 0 || len(c.Finalizers) != 0 {
		t.Error("it was reconciled")
	}
	w.change(func(c *addonsv1.HelmChartProxy) { c.Labels = map[string]string{clusterv1.WatchLabel: "blue"} })
	w.run()
	w.release("a")
}

func TestUserSpecIsNeverWritten(t *testing.T) {
	w := newWorld(t)
	w.cluster("a")
	w.chart(func(c *addonsv1.HelmChartProxy) {
		c.Spec.ReleaseNamespace = ""
		c.Spec.Credentials = &addonsv1.Credentials{Secret: corev1.SecretReference{Name: "login"}, Key: "config.json"}
		c.Spec.TLSConfig = &addonsv1.TLSConfig{CASecretRef: &corev1.SecretReference{Name: "ca"}}
	})
	before := &addonsv1.HelmChartProxy{}
	w.must(w.Get(t.Context(), ctrlclient.ObjectKey{Namespace: w.ns, Name: "cni"}, before))
	w.run()
	after := w.run()
	if diff := cmp.Diff(before.Spec, after.Spec); diff != "" || before.Generation != after.Generation {
		t.Errorf("spec (-before +after):\n%s", diff)
	}
	r := w.release("a")
	if r.Spec.Credentials.Secret.Namespace != w.ns || r.Spec.TLSConfig.CASecretRef.Namespace != w.ns || r.Spec.ReleaseNamespace != "default" {
		t.Errorf("release: %+v", r.Spec)
	}
}

func TestChartNamesMayHaveSlashesAndDots(t *testing.T) {
	w := newWorld(t)
	long := strings.Repeat("x", 60)
	w.cluster(long)
	w.chart(func(c *addonsv1.HelmChartProxy) { c.Spec.ChartName = "Team_A/charts/cert-manager.v1" })
	w.run()
	r := w.release(long)
	if len(r.Name) > 63 || !strings.HasPrefix(r.Name, "team-a-charts-cert-manager-v1-") || r.Spec.ChartName != "Team_A/charts/cert-manager.v1" {
		t.Errorf("release %s of chart %s", r.Name, r.Spec.ChartName)
	}
	if len(r.Spec.ReleaseName) > 53 || !strings.HasPrefix(r.Spec.ReleaseName, "cert-manager-") {
		t.Errorf("release name %s", r.Spec.ReleaseName)
	}
}

func TestReleaseNamesAreDeterministic(t *testing.T) {
	w := newWorld(t)
	w.cluster("a")
	w.cluster("b")
	w.chart(nil)
	w.run()
	before := w.all()
	if before["a"].Spec.ReleaseName == before["b"].Spec.ReleaseName {
		t.Errorf("two clusters, one name: %s", before["a"].Spec.ReleaseName)
	}
	w.must(w.Delete(t.Context(), w.release("a")))
	w.run()
	after := w.release("a")
	if after.UID == before["a"].UID || after.Name != before["a"].Name || after.Spec.ReleaseName != before["a"].Spec.ReleaseName {
		t.Errorf("created again as %s/%s, was %s/%s", after.Name, after.Spec.ReleaseName, before["a"].Name, before["a"].Spec.ReleaseName)
	}
}

func TestUpstreamReleasesAreAdopted(t *testing.T) {
	w := newWorld(t)
	w.cluster("a")
	c := w.chart(nil)
	old := &addonsv1.HelmReleaseProxy{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: w.ns, Name: "cilium-a-x7k2p",
			Labels:          map[string]string{clusterv1.ClusterNameLabel: "a", addonsv1.HelmChartProxyLabel: "cni"},
			Annotations:     map[string]string{addonsv1.GeneratedNameAnnotation: "true", addonsv1.InstalledAnnotation: "true"},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(c, addonsv1.GroupVersion.WithKind(plan.ChartKind))},
		},
		Spec: addonsv1.HelmReleaseProxySpec{
			ClusterRef: corev1.ObjectReference{APIVersion: "cluster.x-k8s.io/v1beta1", Kind: "Cluster", Namespace: w.ns, Name: "a"},
			ChartName:  "cilium", RepoURL: "https://charts.example.com", ReleaseNamespace: "kube-system",
			ReleaseName: "cilium-1700000000", Values: "cluster: a",
		},
	}
	w.must(w.Create(t.Context(), old))
	w.run()
	r := w.release("a")
	if len(w.all()) != 1 || r.UID != old.UID || r.Spec.ReleaseName != "cilium-1700000000" || r.Annotations[addonsv1.InstalledAnnotation] != "true" {
		t.Errorf("release: %+v", r)
	}
	w.quiet()
}

func TestImmutableChangeReinstallsTheRelease(t *testing.T) {
	for name, change := range map[string]func(*addonsv1.HelmChartProxySpec){
		"chart":        func(s *addonsv1.HelmChartProxySpec) { s.ChartName = "calico" },
		"repository":   func(s *addonsv1.HelmChartProxySpec) { s.RepoURL = "https://other.example.com" },
		"namespace":    func(s *addonsv1.HelmChartProxySpec) { s.ReleaseNamespace = "cni" },
		"release name": func(s *addonsv1.HelmChartProxySpec) { s.ReleaseName = "cni" },
		"tool":         func(s *addonsv1.HelmChartProxySpec) { s.Tool = addonsv1.Manifests },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.cluster("a")
			w.cluster("b")
			w.chart(nil)
			w.run()
			old := w.release("a")
			old.Finalizers = []string{"test/hold"}
			w.must(w.Update(t.Context(), old))
			w.change(func(c *addonsv1.HelmChartProxy) { change(&c.Spec) })
			w.run()
			c := w.run()
			w.has(c, addonsv1.SpecsUpToDate, "False HelmReleaseProxyReinstalling: Waiting for releases to be uninstalled from clusters a")
			if r := w.release("a"); r.UID != old.UID || r.DeletionTimestamp.IsZero() {
				t.Errorf("the old release is not on its way out: %+v", r)
			}
			old = w.release("a")
			old.Finalizers = nil
			w.must(w.Update(t.Context(), old))
			w.run()
			if r := w.release("a"); r.UID == old.UID {
				t.Error("no new release was made")
			}
			w.quiet()
		})
	}
}

func TestOrphanedReleasesAreDeleted(t *testing.T) {
	w := newWorld(t)
	a := w.cluster("a", "cni=cilium")
	b := w.cluster("b", "cni=cilium")
	w.chart(func(c *addonsv1.HelmChartProxy) {
		c.Spec.ClusterSelector = metav1.LabelSelector{MatchLabels: map[string]string{"cni": "cilium"}}
	})
	w.run()
	a.Labels, b.Labels = nil, nil
	b.Spec.Paused = ptr.To(true)
	w.must(w.Update(t.Context(), a))
	w.must(w.Update(t.Context(), b))
	w.run()
	if got := w.all(); got["a"] != nil || got["b"] == nil {
		t.Errorf("releases: %v", got)
	}
}

func TestInstallOnceIsNotUpgraded(t *testing.T) {
	w := newWorld(t)
	a := w.cluster("a")
	w.chart(func(c *addonsv1.HelmChartProxy) { c.Spec.ReconcileStrategy = addonsv1.InstallOnce })
	w.run()
	w.change(func(c *addonsv1.HelmChartProxy) { c.Spec.Version = "1" })
	w.run()
	r := w.release("a")
	if r.Spec.Version != "1" {
		t.Errorf("before it is installed, version is %q", r.Spec.Version)
	}
	r.Annotations[addonsv1.InstalledAnnotation] = "true"
	w.must(w.Update(t.Context(), r))
	w.change(func(c *addonsv1.HelmChartProxy) { c.Spec.Version, c.Spec.ReleaseNamespace = "2", "elsewhere" })
	w.run()
	if got := w.release("a"); got.Spec.Version != "1" || got.UID != r.UID {
		t.Errorf("release: %+v", got.Spec)
	}
	w.change(func(c *addonsv1.HelmChartProxy) {
		c.Spec.ClusterSelector = metav1.LabelSelector{MatchLabels: map[string]string{"none": "such"}}
	})
	w.run()
	w.release("a")
	w.must(w.Delete(t.Context(), a))
	w.run()
	if len(w.all()) != 0 {
		t.Error("it outlived its Cluster")
	}
}

func TestPausedChartsAreSkipped(t *testing.T) {
	w := newWorld(t)
	a := w.cluster("a")
	w.cluster("b")
	w.chart(nil)
	w.run()
	a.Spec.Paused = ptr.To(true)
	w.must(w.Update(t.Context(), a))
	w.change(func(c *addonsv1.HelmChartProxy) { c.Spec.Version = "1" })
	w.run()
	if w.release("a").Spec.Version != "" || w.release("b").Spec.Version != "1" {
		t.Error("the paused cluster got the change, or the other did not")
	}
	w.change(func(c *addonsv1.HelmChartProxy) {
		c.Spec.Version, c.Annotations = "2", map[string]string{clusterv1.PausedAnnotation: ""}
	})
	w.run()
	if w.release("b").Spec.Version != "1" {
		t.Error("the paused HelmChartProxy was reconciled")
	}
}

func TestClusterctlMoveKeepsReleases(t *testing.T) {
	w := newWorld(t)
	w.cluster("a")
	c := w.chart(nil)
	w.run()
	w.change(func(c *addonsv1.HelmChartProxy) {
		c.Annotations = map[string]string{clusterctlv1.DeleteForMoveAnnotation: ""}
	})
	w.must(w.Delete(t.Context(), c))
	if got := w.run(); got.Name == "" {
		t.Error("it did not wait for clusterctl")
	}
	w.release("a")
}

func TestDeletedClusterKeepsReleaseUnlessConfigured(t *testing.T) {
	for name, before := range map[string]bool{"keeps": false, "uninstalls": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			a := w.cluster("a")
			a.Finalizers = []string{"test/hold"}
			w.must(w.Update(t.Context(), a))
			w.chart(func(c *addonsv1.HelmChartProxy) {
				c.Spec.Options.Uninstall = &addonsv1.HelmUninstallOptions{BeforeCluster: before}
			})
			w.run()
			w.must(w.Delete(t.Context(), a))
			w.run()
			if gone := w.all()["a"] == nil; gone != before {
				t.Errorf("gone is %t", gone)
			}
			w.run()
			if before && len(w.all()) != 0 {
				t.Error("it was installed again")
			}
		})
	}
}

func TestDeletionWaitsForReleases(t *testing.T) {
	w := newWorld(t)
	w.cluster("a")
	c := w.chart(nil)
	w.run()
	r := w.release("a")
	r.Finalizers = []string{"test/hold"}
	w.must(w.Update(t.Context(), r))
	w.must(w.Delete(t.Context(), c))
	w.run()
	if got := w.run(); got.Name == "" {
		t.Fatal("it went before its release")
	}
	w.quiet()
	r = w.release("a")
	r.Finalizers = nil
	w.must(w.Update(t.Context(), r))
	if got := w.run(); got.Name != "" {
		t.Errorf("it is still there: %+v", got)
	}
}

func TestRandomValuesAreStable(t *testing.T) {
	w := newWorld(t)
	a := w.cluster("a")
	w.chart(func(c *addonsv1.HelmChartProxy) {
		c.Spec.ValuesTemplate = `{password: {{ randAlphaNum 16 }}, at: "{{ now }}", zone: {{ .Cluster.metadata.labels.zone }}}`
	})
	w.run()
	first := w.release("a").Spec.Values
	w.settled.forget(w.key()) // a restart
	w.quiet()
	if got := w.release("a").Spec.Values; got != first {
		t.Errorf("values were %q, now %q", first, got)
	}
	a.Labels = map[string]string{"zone": "z"}
	w.must(w.Update(t.Context(), a))
	w.run()
	if got := w.release("a").Spec.Values; got == first || !strings.Contains(got, "zone: z") {
		t.Errorf("values are %q", got)
	}
}

func (w *world) key() ctrlclient.ObjectKey { return ctrlclient.ObjectKey{Namespace: w.ns, Name: "cni"} }

func TestForeignReleasesAreNotAdopted(t *testing.T) {
	w := newWorld(t)
	w.cluster("a")
	w.chart(nil)
	other := &addonsv1.HelmReleaseProxy{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: w.ns, Name: "mine", Labels: map[string]string{addonsv1.HelmChartProxyLabel: "cni"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "x", UID: "u", Controller: ptr.To(true)}},
		},
		Spec: addonsv1.HelmReleaseProxySpec{
			ClusterRef: corev1.ObjectReference{Name: "a", Namespace: w.ns}, ChartName: "cilium", RepoURL: "https://charts.example.com",
			ReleaseNamespace: "kube-system",
		},
	}
	w.must(w.Create(t.Context(), other))
	c := w.run()
	w.has(c, addonsv1.SpecsUpToDate, `False HelmReleaseProxyCreationFailed: Cluster a: HelmReleaseProxy "mine" has the label of this HelmChartProxy but is owned by ConfigMap "x"`)
}

func TestInvalidSelectorIsReported(t *testing.T) {
	w := newWorld(t)
	w.chart(func(c *addonsv1.HelmChartProxy) {
		c.Spec.ClusterSelector = metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Like"}}}
	})
	c, result, err := w.try()
	if err != nil || result.RequeueAfter != 0 {
		t.Errorf("result %+v, error %v, want no retry before the spec changes", result, err)
	}
	w.has(c, addonsv1.SpecsUpToDate, "False ClusterSelectionFailed: Reading spec.clusterSelector")
	w.must(w.Delete(t.Context(), c))
	if c := w.run(); c.Name != "" {
		t.Error("it can't be deleted")
	}
}

func TestDeletedChartIsForgotten(t *testing.T) {
	w := newWorld(t)
	if _, _, err := w.try(); err != nil && !apierrors.IsNotFound(err) {
		t.Error(err)
	}
}
