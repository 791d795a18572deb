package admission

import (
	"context"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	droverv1 "github.com/drover-dev/drover/api/drover/v1alpha1"
	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/base/version"
	"github.com/drover-dev/drover/internal/controllers/clusters/cluster"
	"github.com/drover-dev/drover/internal/controllers/clusters/records"
	"github.com/drover-dev/drover/internal/controllers/requester"
	"github.com/drover-dev/drover/internal/model/audit"
	"github.com/drover-dev/drover/internal/model/spec"
	"github.com/drover-dev/drover/internal/test/kubetest"
)

func TestMain(m *testing.M) { os.Exit(kubetest.Main(m)) }

// world is an API server and the rules, which tests call directly.
type world struct {
	*testing.T
	client.Client
	*clusterRules

	ns string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	server := kubetest.SharedWithoutWebhooks(t)
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, authorizationv1.AddToScheme, clusterv1.AddToScheme, anywherev1.AddToScheme, droverv1.AddToScheme, packagesv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	c, err := client.New(server.Config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	users := &requester.Reviewer{Client: c}
	rules := &clusterRules{
		Options: Options{Version: version.ForMinor}, reader: c, live: c, users: users, credentials: newCredentialRules(c, users),
		records: &records.Recorder{Client: c, Live: c}, now: time.Now,
	}
	w := &world{T: t, Client: c, clusterRules: rules, ns: server.Namespace(t)}
	t.Cleanup(func() { // Rules that count clusters count those of all namespaces.
		ctx := context.WithoutCancel(t.Context())
		all := &anywherev1.ClusterList{}
		w.must(c.List(ctx, all))
		for i := range all.Items {
			w.must(client.IgnoreNotFound(c.Delete(ctx, &all.Items[i])))
		}
	})
	return w
}

// workload returns a valid Cluster.
func (w *world) workload(name string) *anywherev1.Cluster {
	c := &anywherev1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: w.ns}}
	c.Spec.KubernetesVersion = "1.35"
	c.Spec.Management = ptr.To(false)
	c.Spec.ControlPlaneConfiguration.Count = 1
	c.Spec.WorkerNodeGroupConfigurations = []anywherev1.WorkerNodeGroupConfiguration{{Name: "md-0", Count: ptr.To(1)}}
	c.Spec.DatacenterRef = anywherev1.Ref{Kind: "DockerDatacenterConfig", Name: name}
	spec.DefaultCluster(c)
	return c
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) expect(name, want string, err error) {
	w.Helper()
	if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
		w.Errorf("%s: error is %v, want %q", name, err, want)
	}
}

func creator() authenticationv1.UserInfo {
	return authenticationv1.UserInfo{Username: "developer", Groups: []string{"system:authenticated"}}
}

func administrator() authenticationv1.UserInfo {
	return authenticationv1.UserInfo{Username: "admin", Groups: []string{"system:masters", "system:authenticated"}}
}

// as returns the context of a create request of a user.
func (w *world) as(user authenticationv1.UserInfo) context.Context {
	request := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{Operation: admissionv1.Create, UserInfo: user}}
	return admission.NewContextWithRequest(w.Context(), request)
}

func TestClusterCreateRules(t *testing.T) {
	w := newWorld(t)
	w.must(w.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.ns + "-other"}}))
	taken := w.workload("taken")
	taken.Spec.ManagementCluster.Name = "elsewhere"
	taken.Namespace = w.ns + "-other"
	w.must(w.Create(t.Context(), taken))
	manager := w.workload("manager")
	manager.Spec.Management, manager.Spec.EksaVersion = nil, "v0.24.1"
	w.must(w.Create(t.Context(), manager))
	foreign := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: anywherev1.SystemNamespace, Name: "foreign"}}
	foreign.Spec.ControlPlaneRef = clusterv1.ContractVersionedObjectReference{APIGroup: "controlplane.cluster.x-k8s.io", Kind: "KubeadmControlPlane", Name: "x"}
	w.must(w.Create(t.Context(), foreign))
	const selfManaged = "creating new cluster on existing cluster is not supported for self managed clusters"
	encrypted := []anywherev1.EtcdEncryption{{Resources: []string{"secrets"}, Providers: []anywherev1.EtcdEncryptionProvider{{
		KMS: &anywherev1.KMS{Name: "k", SocketListenAddress: "unix:///var/run/k.sock"},
	}}}}
	for _, tc := range []struct {
		name   string
		change func(*anywherev1.Cluster)
		want   string
	}{
		{"a good one", func(*anywherev1.Cluster) {}, ""},
		{"one that manages itself", func(c *anywherev1.Cluster) { c.Spec.Management = nil }, selfManaged},
		{"one that manages itself, by a command", func(c *anywherev1.Cluster) {
			c.Spec.Management = nil
			c.Annotations = map[string]string{anywherev1.ManagedByCLIAnnotation: "true"}
		}, ""},
		{"one that manages itself, on its way from elsewhere", func(c *anywherev1.Cluster) {
			c.Spec.Management = nil
			c.Annotations = map[string]string{anywherev1.PausedAnnotation: "true"}
		}, ""},
		{"encryption from the start", func(c *anywherev1.Cluster) { c.Spec.EtcdEncryption = encrypted }, "etcdEncryption is not supported during cluster creation"},
		{"a name that another has", func(c *anywherev1.Cluster) { c.Name = "taken" }, "cluster name taken already exists"},
		{"a name that a cluster has which is not ours", func(c *anywherev1.Cluster) { c.Name = "foreign" }, "cluster name foreign already exists"},
		{"a version that is not shipped", func(c *anywherev1.Cluster) { c.Spec.KubernetesVersion = "1.30" }, "1.36, 1.35"},
		{"content that is wrong", func(c *anywherev1.Cluster) { c.Spec.ControlPlaneConfiguration.Count = 2 }, "even number"},
		{"a management cluster that is elsewhere", func(c *anywherev1.Cluster) { c.Spec.ManagementCluster.Name = "lost" }, `"lost" is not a management cluster of this management plane`},
		{"a workload cluster in its place", func(c *anywherev1.Cluster) { c.Spec.ManagementCluster.Name = "taken" }, `"taken" is not a management cluster`},
		{"a management cluster that follows, on its way from elsewhere", func(c *anywherev1.Cluster) {
			c.Spec.ManagementCluster.Name = "lost"
			c.Annotations = map[string]string{anywherev1.PausedAnnotation: "true"}
		}, ""},
		{"older than its manager", func(c *anywherev1.Cluster) {
			c.Spec.ManagementCluster.Name, c.Spec.EksaVersion = "manager", "v0.23.0"
		}, ""},
		{"newer than its manager", func(c *anywherev1.Cluster) {
			c.Spec.ManagementCluster.Name, c.Spec.EksaVersion = "manager", "v0.25.0"
		}, "cannot upgrade workload cluster to v0.25.0 while management cluster is an older version: v0.24.1"},
	} {
		c := w.workload("new")
		tc.change(c)
		_, err := w.ValidateCreate(w.as(administrator()), c)
		w.expect(tc.name, tc.want, err)
	}
}

func TestClusterUpdateRules(t *testing.T) {
	w := newWorld(t)
	for _, tc := range []struct {
		name   string
		before func(*anywherev1.Cluster)
		change func(*anywherev1.Cluster)
		want   string
	}{
		{"nothing", nil, func(*anywherev1.Cluster) {}, ""},
		{"a count", nil, func(c *anywherev1.Cluster) { c.Spec.WorkerNodeGroupConfigurations[0].Count = ptr.To(3) }, ""},
		{"the next version", nil, func(c *anywherev1.Cluster) { c.Spec.KubernetesVersion = "1.36" }, ""},
		{"the version before", func(c *anywherev1.Cluster) { c.Spec.KubernetesVersion = "1.36" }, func(c *anywherev1.Cluster) { c.Spec.KubernetesVersion = "1.35" }, "downgrade"},
		{"two versions at once", func(c *anywherev1.Cluster) { c.Spec.KubernetesVersion = "1.34" }, func(c *anywherev1.Cluster) { c.Spec.KubernetesVersion = "1.36" }, "minor version skew"},
		{"the network", nil, func(c *anywherev1.Cluster) { c.Spec.ClusterNetwork.Pods.CidrBlocks = []string{"10.0.0.0/16"} }, "immutable"},
		{"who manages it", nil, func(c *anywherev1.Cluster) { c.Spec.Management = ptr.To(true) }, "immutable"},
		{"content that is wrong", nil, func(c *anywherev1.Cluster) { c.Spec.ControlPlaneConfiguration.Count = 2 }, "even number"},
		{"a bad one that goes", func(c *anywherev1.Cluster) { c.Spec.ControlPlaneConfiguration.Count = 2 }, func(c *anywherev1.Cluster) {
			c.DeletionTimestamp, c.Finalizers = ptr.To(metav1.Now()), nil
			c.Spec.ControlPlaneConfiguration.Count = 4
		}, ""},
		{"labels of a bad one", func(c *anywherev1.Cluster) { c.Spec.ControlPlaneConfiguration.Count = 2 }, func(c *anywherev1.Cluster) { c.Labels = map[string]string{"a": "b"} }, ""},
	} {
		was := w.workload("changed")
		if tc.before != nil {
			tc.before(was)
		}
		is := was.DeepCopy()
		tc.change(is)
		_, err := w.ValidateUpdate(t.Context(), was, is)
		w.expect(tc.name, tc.want, err)
	}
}

func TestReorderedNoProxyIsNoChange(t *testing.T) {
	w := newWorld(t)
	was := w.workload("proxied")
	was.Spec.ProxyConfiguration = &anywherev1.ProxyConfiguration{HTTPProxy: "p:1", HTTPSProxy: "p:1", NoProxy: []string{"b", "a"}}
	is := was.DeepCopy()
	is.Spec.ProxyConfiguration.NoProxy = []string{"a", "b"}
	old, err := json.Marshal(was)
	w.must(err)
	request := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{Operation: admissionv1.Update, UserInfo: creator()}}
	request.OldObject.Raw = old
	w.must(w.Default(admission.NewContextWithRequest(t.Context(), request), is))
	if got := strings.Join(is.Spec.ProxyConfiguration.NoProxy, ","); got != "b,a" {
		t.Errorf("noProxy is %s, which replaces machines", got)
	}
}

func TestEndpointOfANewClusterIsOutsideOfItsNetwork(t *testing.T) {
	w := newWorld(t)
	c := w.workload("inside")
	c.Spec.DatacenterRef.Kind = anywherev1.PacketDatacenterConfigKind
	c.Spec.ControlPlaneConfiguration.Endpoint = &anywherev1.Endpoint{Host: "192.168.1.1"}
	_, err := w.ValidateCreate(w.as(creator()), c)
	w.expect("within the Pod block", "192.168.1.1 is within the Pod block 192.168.0.0/16", err)
}

func TestClusterDeleteRules(t *testing.T) {
	w := newWorld(t)
	manages := func(name string, annotations map[string]string) *anywherev1.Cluster {
		c := w.workload(name)
		c.Spec.Management, c.Annotations = ptr.To(true), annotations
		return c
	}
	cli := map[string]string{anywherev1.ManagedByCLIAnnotation: "true"}
	w.expect("a workload cluster", "", w.delete(w.workload("wl")))
	w.expect("a management cluster", "deleting self-managed clusters is not supported", w.delete(manages("idle", nil)))
	w.expect("a management cluster, by a command", "", w.delete(manages("idle", cli)))

	managed := w.workload("managed")
	managed.Spec.ManagementCluster.Name = "busy"
	w.must(w.Create(t.Context(), managed))
	w.expect("a management cluster with work", "delete managed first", w.delete(manages("busy", cli)))
	w.expect("one that is moved away", "", w.delete(manages("busy", map[string]string{anywherev1.PausedAnnotation: "true"})))
}

// delete validates the deletion of a Cluster by a developer.
func (w *world) delete(c *anywherev1.Cluster) error {
	c.UID = types.UID(c.Name)
	request := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{Operation: admissionv1.Delete, UserInfo: authenticationv1.UserInfo{Username: "developer"}}}
	_, err := w.ValidateDelete(admission.NewContextWithRequest(w.Context(), request), c)
	return err
}

func TestDeletionsAreRecorded(t *testing.T) {
	w := newWorld(t)
	recorded := func(name string) bool {
		all := &droverv1.AuditRecordList{}
		w.must(w.List(t.Context(), all, client.MatchingLabels{droverv1.ClusterLabel: name, droverv1.NamespaceLabel: w.ns}))
		return slices.ContainsFunc(all.Items, func(r droverv1.AuditRecord) bool {
			return r.Spec.Action == droverv1.Deleted && r.Spec.User == "developer"
		})
	}
	w.must(w.delete(w.workload("recorded")))
	if !recorded("recorded") {
		t.Error("nothing is on record")
	}
	kept := w.workload("kept")
	kept.Spec.Management = ptr.To(true)
	if err := w.delete(kept); err == nil || recorded("kept") {
		t.Errorf("a deletion that is refused (%v) is on record", err)
	}
	dry := w.workload("dry")
	dry.UID = "dry"
	request := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{Operation: admissionv1.Delete, DryRun: ptr.To(true)}}
	if _, err := w.ValidateDelete(admission.NewContextWithRequest(t.Context(), request), dry); err != nil || recorded("dry") {
		t.Errorf("a dry run (%v) is on record", err)
	}
}

func TestConfigUpdateRules(t *testing.T) {
	datacenter := configRules[*anywherev1.PacketDatacenterConfig]{spec: func(o *anywherev1.PacketDatacenterConfig) any { return o.Spec }, fixed: always}
	was := &anywherev1.PacketDatacenterConfig{Spec: anywherev1.PacketDatacenterConfigSpec{ProjectID: "p", Metro: "da"}}
	is := was.DeepCopy()
	is.Labels = map[string]string{"a": "b"}
	w := &world{T: t}
	_, err := datacenter.ValidateUpdate(t.Context(), was, is)
	w.expect("labels", "", err)
	is.Spec.Metro = "am"
	_, err = datacenter.ValidateUpdate(t.Context(), was, is)
	w.expect("a metro", "config is immutable", err)
	was.Annotations = map[string]string{anywherev1.PausedAnnotation: "true"}
	_, err = datacenter.ValidateUpdate(t.Context(), was, is)
	w.expect("a metro of one that is paused", "", err)

	login := configRules[*anywherev1.OIDCConfig]{spec: func(o *anywherev1.OIDCConfig) any { return o.Spec }, fixed: ofManagement}
	before := &anywherev1.OIDCConfig{Spec: anywherev1.OIDCConfigSpec{ClientID: "a", IssuerURL: "https://a.example.com"}}
	after := before.DeepCopy()
	after.Spec.ClientID = "b"
	_, err = login.ValidateUpdate(t.Context(), before, after)
	w.expect("the login of a management cluster", "config is immutable", err)
	before.Annotations = map[string]string{anywherev1.ManagedByAnnotation: "mgmt"}
	_, err = login.ValidateUpdate(t.Context(), before, after)
	w.expect("the login of a workload cluster", "", err)

	repositories := newConfigWebhooks(&clusterRules{}).flux
	repositories.changes = nil
	short := &anywherev1.FluxConfig{Spec: anywherev1.FluxConfigSpec{Git: &anywherev1.GitProviderConfig{RepositoryURL: "ssh://git@git.example.com/fleet.git"}}}
	long := short.DeepCopy()
	long.Spec.Branch, long.Spec.Git.SSHKeyAlgorithm = "main", "ecdsa"
	_, err = repositories.ValidateUpdate(t.Context(), short, long)
	w.expect("the defaults of a repository", "", err)
	long.Spec.Branch = "dev"
	_, err = repositories.ValidateUpdate(t.Context(), short, long)
	w.expect("the branch of a repository", "config is immutable", err)
}

func TestCreatorIsImmutable(t *testing.T) {
	w := newWorld(t)
	developer, admin := creator(), administrator()
	for _, tc := range []struct {
		name         string
		operation    admissionv1.Operation
		by           authenticationv1.UserInfo
		was, claimed string
		want         string
	}{
		{"a new one", admissionv1.Create, developer, "", "", "developer"},
		{"another user's name", admissionv1.Create, developer, "", "admin", "developer"},
		{"an administrator acting for another user", admissionv1.Create, admin, "", "developer", "developer"},
		{"an update by another", admissionv1.Update, admin, "developer", "developer", "developer"},
		{"an update that takes the name away", admissionv1.Update, developer, "developer", "", "developer"},
		{"an update that puts another name in", admissionv1.Update, admin, "developer", "other", "developer"},
		{"an update that puts a name in where there was none", admissionv1.Update, developer, "", "developer", ""},
	} {
		was, is := w.workload("signed"), w.workload("signed")
		was.Annotations = map[string]string{cluster.CreatedByAnnotation: tc.was}
		is.Annotations = map[string]string{cluster.CreatedByAnnotation: tc.claimed}
		old, err := json.Marshal(was)
		w.must(err)
		request := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{Operation: tc.operation, UserInfo: tc.by}}
		if tc.operation == admissionv1.Update {
			request.OldObject.Raw = old
		}
		w.must(w.Default(admission.NewContextWithRequest(context.Background(), request), is))
		if got := is.Annotations[cluster.CreatedByAnnotation]; got != tc.want {
			t.Errorf("%s: got %q, want %q", tc.name, got, tc.want)
		}
		if told := strings.Contains(is.Annotations[audit.Annotation], `"user":"`+tc.by.Username+`"`); told != (tc.operation == admissionv1.Create) {
			t.Errorf("%s: got user %q on record", tc.name, is.Annotations[audit.Annotation])
		}
	}
}

func TestCredentialsRules(t *testing.T) {
	w := newWorld(t)
	for name, labels := range map[string]map[string]string{"meant": {anywherev1.CredentialsLabel: "true"}, "other": nil} {
		w.must(w.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: anywherev1.SystemNamespace, Name: name, Labels: labels}}))
	}
	rules := &configRules[*anywherev1.PacketDatacenterConfig]{users: w.users, more: newCredentialRules(w.Client, w.users).ofDatacenter}
	for name, want := range map[string]string{"meant": "", "other": "spec.credentialsRef.name: Secret \"other\"", "none-yet": "", "": ""} {
		d := &anywherev1.PacketDatacenterConfig{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "d"}, Spec: anywherev1.PacketDatacenterConfigSpec{
			ProjectID: "p", Metro: "da", CredentialsRef: &anywherev1.CredentialsRef{Name: name},
		}}
		_, err := rules.ValidateCreate(t.Context(), d)
		w.expect("naming "+name, want, err)
		d.Annotations = map[string]string{anywherev1.PausedAnnotation: "true"}
		_, err = rules.ValidateCreate(w.as(administrator()), d)
		w.expect("bringing along "+name, "", err)
	}
}

func TestMovesAreNotRecorded(t *testing.T) {
	w := newWorld(t)
	developer, admin := creator(), administrator()
	for name, tc := range map[string]struct {
		by       authenticationv1.UserInfo
		recorded bool
	}{"who-may": {admin, false}, "who-may-not": {developer, true}} {
		c := w.workload(name)
		c.UID = types.UID(name)
		c.Annotations = map[string]string{cluster.CreatedByAnnotation: "creator", anywherev1.PausedAnnotation: "true", audit.Annotation: `[{"user":"creator"}]`}
		request := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{Operation: admissionv1.Create, UserInfo: tc.by}}
		ctx := admission.NewContextWithRequest(t.Context(), request)
		w.must(w.Default(ctx, c))
		if noted := strings.Contains(c.Annotations[audit.Annotation], tc.by.Username); noted != tc.recorded || strings.Contains(c.Annotations[audit.Annotation], "creator") {
			t.Errorf("%s: got creator %q on record", name, c.Annotations[audit.Annotation])
		}
		c.Annotations[clusterctlv1.DeleteForMoveAnnotation] = ""
		request.Operation = admissionv1.Delete
		_, err := w.ValidateDelete(admission.NewContextWithRequest(t.Context(), request), c)
		w.must(err)
		all := &droverv1.AuditRecordList{}
		w.must(w.List(t.Context(), all, client.MatchingLabels{droverv1.ClusterLabel: name, droverv1.NamespaceLabel: w.ns}))
		if recorded := len(all.Items) > 0; recorded != tc.recorded {
			t.Errorf("%s: a deletion is on record: %t", name, recorded)
		}
	}
}

func TestRegistryCredentialsOfOthersAreRejected(t *testing.T) {
	w := newWorld(t)
	c := w.workload("mirrored")
	c.Spec.RegistryMirrorConfiguration = &anywherev1.RegistryMirrorConfiguration{Endpoint: "192.0.2.66", Port: "443", Authenticate: true}
	err := w.content(t.Context(), c)
	w.expect("no Secret yet", "", err)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: anywherev1.SystemNamespace, Name: anywherev1.RegistryCredentials}}
	w.must(w.Create(t.Context(), secret))
	t.Cleanup(func() { _ = w.Delete(context.Background(), secret) })
	err = w.content(t.Context(), c)
	w.expect("no namespace", "spec.registryMirrorConfiguration.authenticate: ", err)
	secret.Annotations = map[string]string{anywherev1.CredentialsNamespacesAnnotation: w.ns, anywherev1.CredentialsEndpointsAnnotation: "mirror.example.com"}
	w.must(w.Update(t.Context(), secret))
	err = w.content(t.Context(), c)
	w.expect("another endpoint", "may not be sent to", err)
	c.Spec.RegistryMirrorConfiguration.Endpoint = "mirror.example.com"
	err = w.content(t.Context(), c)
	w.expect("the endpoint", "", err)
}
