package cluster

import (
	"context"
	"encoding/base64"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	droverv1 "github.com/drover-dev/drover/api/drover/v1alpha1"
	"github.com/drover-dev/drover/internal/model/audit"
)

func system(name string) client.ObjectKey {
	return client.ObjectKey{Namespace: anywherev1.SystemNamespace, Name: name}
}

func TestReconcileIsIdempotent(t *testing.T) {
	w := newWorld(t)
	w.make("first")
	w.reconcile("first")
	want := []string{
		"Cluster first", "HelmChartProxy first-cni", "KubeadmConfigTemplate first-extra-1", "KubeadmConfigTemplate first-md-0-1", "KubeadmControlPlane first",
		"MachineDeployment first-extra", "MachineDeployment first-md-0",
		"MachineHealthCheck first-extra-worker-unhealthy", "MachineHealthCheck first-kcp-unhealthy", "MachineHealthCheck first-md-0-worker-unhealthy",
		"PacketCluster first", "PacketMachineTemplate first-control-plane-1", "PacketMachineTemplate first-extra-1", "PacketMachineTemplate first-md-0-1",
	}
	if diff := cmp.Diff(want, w.names("first")); diff != "" {
		t.Fatalf("objects (-want +got):\n%s", diff)
	}
	if events := w.takeEvents(); len(events) != len(want) || !strings.Contains(strings.Join(events, "\n"), `Normal Created Created KubeadmControlPlane "first"`) {
		t.Errorf("events are %q", events)
	}
	before, version := w.objects("first"), w.cluster("first").ResourceVersion
	w.reconcile("first")
	if diff := cmp.Diff(before, w.objects("first")); diff != "" || w.cluster("first").ResourceVersion != version {
		t.Errorf("the second reconcile wrote:\n%s", diff)
	}
	if events := w.takeEvents(); len(events) != 0 {
		t.Errorf("the second reconcile emitted %q", events)
	}
}

func TestDriftOfOwnFieldsIsCorrected(t *testing.T) {
	w := newWorld(t)
	w.make("drift")
	w.reconcile("drift")
	d := &clusterv1.MachineDeployment{}
	w.must(w.Get(t.Context(), system("drift-md-0"), d))
	d.Spec.Replicas = ptr.To[int32](9)
	d.Spec.Paused = ptr.To(true)
	d.Labels["mine"] = "too"
	w.must(w.Update(t.Context(), d))
	w.reconcile("drift")
	w.must(w.Get(t.Context(), system("drift-md-0"), d))
	if *d.Spec.Replicas != 1 || !*d.Spec.Paused || d.Labels["mine"] != "too" {
		t.Errorf("got %d, %v, %v", *d.Spec.Replicas, d.Spec.Paused, d.Labels)
	}
	w.must(w.Delete(t.Context(), d))
	w.reconcile("drift")
	w.must(w.Get(t.Context(), system("drift-md-0"), d))
}

func TestUnwantedGroupsAndTemplatesAreDeleted(t *testing.T) {
	w := newWorld(t)
	w.make("less")
	w.reconcile("less")
	w.change("less", func(c *anywherev1.Cluster) {
		groups := c.Spec.WorkerNodeGroupConfigurations[:1]
		groups[0].Labels = map[string]string{"new": "label"}
		c.Spec.WorkerNodeGroupConfigurations = groups
	})
	w.reconcile("less")
	w.reconcile("less")
	want := []string{
		"Cluster less", "HelmChartProxy less-cni", "KubeadmConfigTemplate less-md-0-2", "KubeadmControlPlane less", "MachineDeployment less-md-0",
		"MachineHealthCheck less-kcp-unhealthy", "MachineHealthCheck less-md-0-worker-unhealthy",
		"PacketCluster less", "PacketMachineTemplate less-control-plane-1", "PacketMachineTemplate less-md-0-1",
	}
	if diff := cmp.Diff(want, w.names("less")); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
}

func TestUsedTemplatesAreKept(t *testing.T) {
	w := newWorld(t)
	w.make("used")
	w.reconcile("used")
	set := &clusterv1.MachineSet{ObjectMeta: metav1.ObjectMeta{Namespace: anywherev1.SystemNamespace, Name: "used-md-0-abc"}}
	d := &clusterv1.MachineDeployment{}
	w.must(w.Get(t.Context(), system("used-md-0"), d))
	set.Labels = d.Spec.Template.Labels
	set.Spec = clusterv1.MachineSetSpec{ClusterName: "used", Selector: d.Spec.Selector, Template: d.Spec.Template}
	w.must(w.Create(t.Context(), set))
	w.change("used", func(c *anywherev1.Cluster) {
		c.Spec.WorkerNodeGroupConfigurations[0].Labels = map[string]string{"new": "label"}
	})
	w.reconcile("used")
	if names := strings.Join(w.names("used"), ","); !strings.Contains(names, "KubeadmConfigTemplate used-md-0-1,KubeadmConfigTemplate used-md-0-2") {
		t.Errorf("objects are %s", names)
	}
	w.must(w.Delete(t.Context(), set))
	w.reconcile("used")
	if names := strings.Join(w.names("used"), ","); strings.Contains(names, "KubeadmConfigTemplate used-md-0-1") {
		t.Errorf("objects are %s", names)
	}
}

func TestCredentialsMustBeAllowed(t *testing.T) {
	w := newWorld(t)
	w.make("lab")
	meta := metav1.ObjectMeta{Namespace: w.ns, Name: "lab"}
	w.must(w.Create(t.Context(), &anywherev1.PacketDatacenterConfig{ObjectMeta: meta, Spec: anywherev1.PacketDatacenterConfigSpec{
		ProjectID: "p", Metro: "da", CredentialsRef: &anywherev1.CredentialsRef{Name: "others-kubeconfig"},
	}}))
	w.must(w.Create(t.Context(), &anywherev1.PacketMachineConfig{ObjectMeta: meta, Spec: anywherev1.PacketMachineConfigSpec{MachineType: "small", OS: "ubuntu_24_04"}}))
	w.change("lab", func(c *anywherev1.Cluster) {
		group := &anywherev1.Ref{Kind: anywherev1.PacketMachineConfigKind, Name: "lab"}
		c.Spec.DatacenterRef = anywherev1.Ref{Kind: anywherev1.PacketDatacenterConfigKind, Name: "lab"}
		c.Spec.ControlPlaneConfiguration.MachineGroupRef = group
		for i := range c.Spec.WorkerNodeGroupConfigurations {
			c.Spec.WorkerNodeGroupConfigurations[i].MachineGroupRef = group
		}
	})
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: anywherev1.SystemNamespace, Name: "others-kubeconfig"}}
	w.must(w.Create(t.Context(), secret))
	expect := func(want string) {
		t.Helper()
		w.reconcile("lab")
		if got := w.failure("lab"); (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("failure is %q, want %q", got, want)
		}
		if made := w.names("lab"); (want == "") != (len(made) > 0) {
			t.Errorf("%v were made", made)
		}
	}
	expect(`DatacenterConfigInvalid: Secret "others-kubeconfig" in namespace "eksa-system" may not be used for machines`)
	secret.Labels = map[string]string{anywherev1.CredentialsLabel: "true"}
	secret.Annotations = map[string]string{anywherev1.CredentialsNamespacesAnnotation: "others"}
	w.must(w.Update(t.Context(), secret))
	expect("may not be used by clusters in namespace")
	secret.Annotations[anywherev1.CredentialsNamespacesAnnotation] = "others," + w.ns
	w.must(w.Update(t.Context(), secret))
	expect("")
}

// TestRegistryCredentialsAreBound names an endpoint of the creator's choice, in a namespace that
// the administrator didn't open.
func TestRegistryCredentialsAreBound(t *testing.T) {
	w := newWorld(t)
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: anywherev1.SystemNamespace, Name: anywherev1.RegistryCredentials},
		StringData: map[string]string{"username": "puller", "password": "canary"},
	}
	w.must(w.Create(t.Context(), secret))
	t.Cleanup(func() { _ = w.Delete(context.Background(), secret) })
	w.make("grab")
	w.change("grab", func(c *anywherev1.Cluster) {
		c.Spec.RegistryMirrorConfiguration = &anywherev1.RegistryMirrorConfiguration{Endpoint: "192.0.2.66", Port: "5000", Authenticate: true}
	})
	for _, step := range []struct {
		annotations map[string]string
		want        string
	}{
		{nil, "may not be used by clusters in namespace"},
		{map[string]string{anywherev1.CredentialsNamespacesAnnotation: "others", anywherev1.CredentialsEndpointsAnnotation: "192.0.2.66:5000"}, "ask an administrator to add the namespace"},
		{map[string]string{anywherev1.CredentialsNamespacesAnnotation: w.ns, anywherev1.CredentialsEndpointsAnnotation: "mirror.example.com"}, `may not be sent to "192.0.2.66:5000"`},
		{map[string]string{anywherev1.CredentialsNamespacesAnnotation: w.ns, anywherev1.CredentialsEndpointsAnnotation: "mirror.example.com,192.0.2.66:5000"}, ""},
	} {
		secret.Annotations = step.annotations
		w.must(w.Update(t.Context(), secret))
		w.reconcile("grab")
		if got := w.failure("grab"); (step.want == "") != (got == "") || !strings.Contains(got, step.want) {
			t.Errorf("failure is %q, want %q", got, step.want)
		}
		made := strings.Join(w.names("grab"), ",")
		if (step.want == "") != strings.Contains(made, "Cluster grab") || w.copies("canary") != (step.want == "") {
			t.Errorf("with %v: objects are %s, copied: %t", step.annotations, made, w.copies("canary"))
		}
	}
}

// copies reports whether another Secret for machines contains credentials.
func (w *world) copies(password string) bool {
	w.Helper()
	all := &corev1.SecretList{}
	w.must(w.List(w.Context(), all, client.InNamespace(anywherev1.SystemNamespace)))
	encoded := base64.StdEncoding.EncodeToString([]byte("puller:" + password))
	for i := range all.Items {
		for _, value := range all.Items[i].Data {
			if all.Items[i].Name != anywherev1.RegistryCredentials && strings.Contains(string(value), encoded) {
				return true
			}
		}
	}
	return false
}

func TestFailureMessages(t *testing.T) {
	w := newWorld(t)
	for _, tc := range []struct {
		name   string
		change func(*anywherev1.Cluster)
		want   string
	}{
		{"no-config", func(c *anywherev1.Cluster) { c.Spec.DatacenterRef.Name = "lost" }, "MissingDependentObjects: cluster \"no-config\" references objects that do not exist in namespace"},
		{"no-manager", func(c *anywherev1.Cluster) { c.Spec.Management, c.Spec.ManagementCluster.Name = nil, "lost" }, "ManagementClusterRefInvalid: lost is not a valid management cluster"},
		{"bad-count", func(c *anywherev1.Cluster) { c.Spec.ControlPlaneConfiguration.Count = 2 }, "ClusterInvalid: "},
		{"bad-group", func(c *anywherev1.Cluster) { c.Spec.WorkerNodeGroupConfigurations[1].Name = "control-plane" }, "ClusterInvalid: "},
		{"bad-version", func(c *anywherev1.Cluster) { c.Spec.KubernetesVersion = "1.21" }, "ClusterInvalid: "},
		{"no-password", func(c *anywherev1.Cluster) {
			c.Spec.RegistryMirrorConfiguration = &anywherev1.RegistryMirrorConfiguration{Endpoint: "192.0.2.1", Port: "443", Authenticate: true}
		}, `MissingDependentObjects: Secret "registry-credentials" not found in namespace "eksa-system"`},
	} {
		w.make(tc.name)
		w.change(tc.name, tc.change)
		w.reconcile(tc.name)
		if got := w.failure(tc.name); !strings.HasPrefix(got, tc.want) {
			t.Errorf("%s: failure is %q, want %q", tc.name, got, tc.want)
		}
		if made := w.names(tc.name); len(made) != 0 {
			t.Errorf("%s: %v were made", tc.name, made)
		}
		if got := conditionText(w.cluster(tc.name).Status, anywherev1.Ready); !strings.HasPrefix(got, "False Failed ") {
			t.Errorf("%s: Ready is %q", tc.name, got)
		}
	}
	w.change("no-config", func(c *anywherev1.Cluster) { c.Spec.DatacenterRef.Name = "no-config" })
	w.reconcile("no-config")
	if got := w.failure("no-config"); got != "" || len(w.names("no-config")) == 0 {
		t.Errorf("after it was put right: %q, %v", got, w.names("no-config"))
	}
}

func TestForeignObjectsAreLeftUnchanged(t *testing.T) {
	w := newWorld(t)
	theirs := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: anywherev1.SystemNamespace, Name: "theirs"}}
	theirs.Spec.ControlPlaneRef = clusterv1.ContractVersionedObjectReference{APIGroup: "controlplane.cluster.x-k8s.io", Kind: "KubeadmControlPlane", Name: "theirs"}
	w.must(w.Create(t.Context(), theirs))
	w.make("theirs")
	w.reconcile("theirs")
	if got := w.failure("theirs"); !strings.Contains(got, "already exists") || len(w.names("theirs")) != 0 {
		t.Errorf("failure is %q, %v were made", got, w.names("theirs"))
	}
	w.must(w.Delete(t.Context(), w.cluster("theirs")))
	w.reconcile("theirs")
	w.must(w.Get(t.Context(), system("theirs"), theirs))

	w.make("a-b")
	w.reconcile("a-b")
	w.make("a")
	w.change("a", func(c *anywherev1.Cluster) { c.Spec.WorkerNodeGroupConfigurations[0].Name = "b-md-0" })
	before := w.objects("a-b")
	w.reconcile("a")
	if got := w.failure("a"); !strings.Contains(got, `"a-b-md-0-1" already exists in namespace eksa-system and does not belong to this cluster`) || strings.Contains(got, w.ns) {
		t.Errorf("failure is %q", got)
	}
	if diff := cmp.Diff(before, w.objects("a-b")); diff != "" {
		t.Errorf("another cluster was changed:\n%s", diff)
	}
}

func TestPausedClusterIsNotReconciled(t *testing.T) {
	w := newWorld(t)
	w.make("paused")
	w.change("paused", func(c *anywherev1.Cluster) { c.Annotations[anywherev1.PausedAnnotation] = "true" })
	version := w.cluster("paused").ResourceVersion
	w.reconcile("paused")
	if w.cluster("paused").ResourceVersion != version || len(w.names("paused")) != 0 {
		t.Error("a paused Cluster was worked on")
	}
}

// TestChangesOfAPausedClusterAreRecorded pauses a cluster, changes it more often than it can hold
// changes, and resumes it.
func TestChangesOfAPausedClusterAreRecorded(t *testing.T) {
	w := newWorld(t)
	w.make("hushed")
	by := func(user string, edit func(*anywherev1.Cluster)) {
		w.change("hushed", func(c *anywherev1.Cluster) {
			old := c.DeepCopy()
			edit(c)
			w.must(audit.Stamp(old, c, authenticationv1.UserInfo{Username: user}, noon))
		})
		w.reconcile("hushed")
	}
	by("intruder", func(c *anywherev1.Cluster) { c.Annotations[anywherev1.PausedAnnotation] = "true" })
	by("intruder", func(c *anywherev1.Cluster) {
		c.Spec.ClusterNetwork.DNS.ResolvConf = &anywherev1.ResolvConf{Path: "/evil"}
	})
	for i := range 105 {
		by("noise", func(c *anywherev1.Cluster) { c.Spec.WorkerNodeGroupConfigurations[0].Count = ptr.To(i + 10) })
	}
	all := &droverv1.AuditRecordList{}
	w.must(w.List(t.Context(), all, client.MatchingLabels{droverv1.ClusterLabel: "hushed"}))
	actions := map[string]int{}
	for _, r := range all.Items {
		actions[r.Spec.User+" "+string(r.Spec.Action)]++
	}
	want := map[string]int{"intruder Paused": 1, "intruder Changed": 1, "noise Scaled": 105}
	if diff := cmp.Diff(want, actions); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}
}

func TestKubeconfigIsCopiedForTheCreator(t *testing.T) {
	w := newWorld(t)
	w.make("copy")
	w.reconcile("copy")
	original := w.kubeconfig("copy", "one")
	w.reconcile("copy")
	key := client.ObjectKey{Namespace: w.ns, Name: "copy-kubeconfig"}
	copied, role, binding := &corev1.Secret{}, &rbacv1.Role{}, &rbacv1.RoleBinding{}
	w.must(w.Get(t.Context(), key, copied))
	w.must(w.Get(t.Context(), key, role))
	w.must(w.Get(t.Context(), key, binding))
	if string(copied.Data["value"]) != "one" || binding.Subjects[0].Name != "developer" || binding.RoleRef.Name != role.Name {
		t.Errorf("got %q, %+v", copied.Data, binding)
	}
	want := []rbacv1.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{"copy-kubeconfig"}}}
	if diff := cmp.Diff(want, role.Rules); diff != "" {
		t.Errorf("rules (-want +got):\n%s", diff)
	}
	original.Data["value"] = []byte("two")
	w.must(w.Update(t.Context(), original))
	w.reconcile("copy")
	w.must(w.Get(t.Context(), key, copied))
	if string(copied.Data["value"]) != "two" {
		t.Errorf("the copy has %q", copied.Data["value"])
	}
	w.must(w.Delete(t.Context(), original))
}

func TestAccessIsRestored(t *testing.T) {
	w := newWorld(t)
	w.make("let-in")
	w.reconcile("let-in")
	original := w.kubeconfig("let-in", "one")
	w.reconcile("let-in")
	key := client.ObjectKey{Namespace: w.ns, Name: "let-in-kubeconfig"}
	role, binding := &rbacv1.Role{}, &rbacv1.RoleBinding{}
	w.must(w.Get(t.Context(), key, role))
	w.must(w.Get(t.Context(), key, binding))
	rules, versions := role.DeepCopy().Rules, w.objects("let-in")
	w.reconcile("let-in")
	if diff := cmp.Diff(versions, w.objects("let-in")); diff != "" {
		t.Errorf("nothing had changed, and something was written:\n%s", diff)
	}

	role.Rules[0].Resources = []string{"secrets", "configmaps"}
	w.must(w.Update(t.Context(), role))
	wrong := binding.DeepCopy()
	wrong.ResourceVersion, wrong.RoleRef.Name = "", "another"
	w.must(w.Delete(t.Context(), binding))
	w.must(w.Create(t.Context(), wrong))
	w.reconcile("let-in")
	w.must(w.Get(t.Context(), key, role))
	w.must(w.Get(t.Context(), key, wrong))
	if diff := cmp.Diff(rules, role.Rules); diff != "" {
		t.Errorf("rules (-want +got):\n%s", diff)
	}
	if wrong.RoleRef != binding.RoleRef {
		t.Errorf("the binding is to %+v", wrong.RoleRef)
	}
	w.must(w.Delete(t.Context(), original))
}

func TestForeignSecretIsNotOverwritten(t *testing.T) {
	w := newWorld(t)
	w.make("own")
	own := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "own-kubeconfig"}, Data: map[string][]byte{"value": []byte("mine")}}
	w.must(w.Create(t.Context(), own))
	w.reconcile("own")
	w.kubeconfig("own", "theirs")
	w.takeEvents()
	w.reconcile("own")
	w.must(w.Get(t.Context(), client.ObjectKeyFromObject(own), own))
	if string(own.Data["value"]) != "mine" {
		t.Errorf("it was overwritten: %q", own.Data)
	}
	if events := strings.Join(w.takeEvents(), "\n"); !strings.Contains(events, `Warning NotOurs Left Secret "own-kubeconfig"`) {
		t.Errorf("events are %s", events)
	}
}

func TestDeletionDeletesOwnObjectsAndConfigs(t *testing.T) {
	w := newWorld(t)
	w.make("goes")
	w.make("stays")
	w.change("stays", func(c *anywherev1.Cluster) { c.Spec.DatacenterRef.Name = "goes" })
	w.reconcile("goes")
	w.must(w.Delete(t.Context(), w.cluster("goes")))
	for range 4 {
		w.reconcile("goes")
	}
	if err := w.Get(t.Context(), w.request("goes").NamespacedName, &anywherev1.Cluster{}); !apierrors.IsNotFound(err) {
		t.Fatalf("the cluster still exists: error %v, %s", err, conditionText(w.cluster("goes").Status, anywherev1.Ready))
	}
	if left := w.names("goes"); len(left) != 0 {
		t.Errorf("got leftovers %v, want none", left)
	}
	w.must(w.Get(t.Context(), client.ObjectKey{Namespace: w.ns, Name: "goes"}, &anywherev1.DockerDatacenterConfig{}))
	w.reconcile("stays")
	w.must(w.Delete(t.Context(), w.cluster("stays")))
	for range 4 {
		w.reconcile("stays")
	}
	if err := w.Get(t.Context(), client.ObjectKey{Namespace: w.ns, Name: "goes"}, &anywherev1.DockerDatacenterConfig{}); !apierrors.IsNotFound(err) {
		t.Errorf("it is no longer referenced, but not deleted: %v", err)
	}
}

func TestDeletionKeepsConnectedRepositories(t *testing.T) {
	for name, tt := range map[string]struct {
		connected metav1.ConditionStatus
		kept      bool
	}{
		"connected":     {metav1.ConditionTrue, true},
		"not-connected": {metav1.ConditionFalse, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			flux := &anywherev1.FluxConfig{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "fleet"}, Spec: anywherev1.FluxConfigSpec{
				ClusterConfigPath: "clusters/mgmt", Git: &anywherev1.GitProviderConfig{RepositoryURL: "ssh://git@git.example.com/fleet.git"},
			}}
			w.must(w.Create(t.Context(), flux))
			flux.Status.Conditions = []metav1.Condition{{
				Type: anywherev1.RepositoryConnected, Status: tt.connected, Reason: anywherev1.RepositoryConnectedReason, LastTransitionTime: metav1.NewTime(noon),
			}}
			w.must(w.Status().Update(t.Context(), flux))
			w.make("one")
			w.change("one", func(c *anywherev1.Cluster) {
				c.Spec.GitOpsRef = &anywherev1.Ref{Kind: anywherev1.FluxConfigKind, Name: "fleet"}
			})
			w.reconcile("one")
			w.must(w.Delete(t.Context(), w.cluster("one")))
			for range 4 {
				w.reconcile("one")
			}
			err := w.Get(t.Context(), client.ObjectKeyFromObject(flux), flux)
			if client.IgnoreNotFound(err) != nil || (err == nil) != tt.kept {
				t.Errorf("reading the FluxConfig: %v, want it to be kept: %t", err, tt.kept)
			}
		})
	}
}

func TestDeletionWaitsForMachinesAndNetwork(t *testing.T) {
	w := newWorld(t)
	w.make("slow")
	w.reconcile("slow")
	held, chart := &clusterv1.Cluster{}, &addonsv1.HelmChartProxy{}
	w.must(w.Get(t.Context(), system("slow"), held))
	held.Finalizers = []string{"example.com/machines"}
	w.must(w.Update(t.Context(), held))
	w.must(w.Get(t.Context(), system("slow-cni"), chart))
	chart.Finalizers = []string{"example.com/release"}
	w.must(w.Update(t.Context(), chart))
	w.must(w.Delete(t.Context(), w.cluster("slow")))
	w.reconcile("slow")
	if got := conditionText(w.cluster("slow").Status, anywherev1.Ready); got != "False Deleting Machines and addresses are being deleted" {
		t.Errorf("Ready is %q", got)
	}
	w.must(w.Get(t.Context(), system("slow"), &controlplanev1.KubeadmControlPlane{})) // Cluster API removes it
	w.must(w.Get(t.Context(), system("slow"), held))
	held.Finalizers = nil
	w.must(w.Update(t.Context(), held))
	w.reconcile("slow")
	if got := conditionText(w.cluster("slow").Status, anywherev1.Ready); got != `False Deleting HelmChartProxy "slow-cni" is being deleted` {
		t.Errorf("Ready is %q", got)
	}
	w.must(w.Get(t.Context(), system("slow-cni"), chart))
	chart.Finalizers = nil
	w.must(w.Update(t.Context(), chart))
	w.reconcile("slow")
	if left := w.names("slow"); len(left) != 0 {
		t.Errorf("got leftovers %v, want none", left)
	}
}

func TestManagementClusterWaitsForWorkloadClusters(t *testing.T) {
	w := newWorld(t)
	w.make("mgmt")
	w.change("mgmt", func(c *anywherev1.Cluster) { c.Spec.Management = ptr.To(true) })
	w.make("a-wl")
	w.change("a-wl", func(c *anywherev1.Cluster) { c.Spec.ManagementCluster.Name = "mgmt" })
	w.reconcile("mgmt")
	w.must(w.Delete(t.Context(), w.cluster("mgmt")))
	w.reconcile("mgmt")
	got := conditionText(w.cluster("mgmt").Status, anywherev1.Ready)
	if !strings.HasPrefix(got, "False Deleting Workload clusters still depend on this management cluster; delete them first: ") || !strings.Contains(got, "a-wl") {
		t.Errorf("Ready is %q", got)
	}
	w.must(w.Get(t.Context(), system("mgmt"), &clusterv1.Cluster{}))
}
