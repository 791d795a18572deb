package admission

import (
	"context"
	"os"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	"sigs.k8s.io/yaml"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	droverv1 "github.com/drover-dev/drover/api/drover/v1alpha1"
	"github.com/drover-dev/drover/internal/controllers/requester"
	"github.com/drover-dev/drover/internal/test/kubetest"
)

func TestMain(m *testing.M) { os.Exit(kubetest.Main(m)) }

// world is an API server and the rules, which tests call directly.
type world struct {
	*testing.T
	client.Client

	rules *rules
	ns    string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	server := kubetest.SharedWithoutWebhooks(t)
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{authorizationv1.AddToScheme, rbacv1.AddToScheme, anywherev1.AddToScheme, droverv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	c, err := client.New(server.Config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{T: t, Client: c, ns: server.Namespace(t)}
	w.rules = &rules{Options: Options{Enabled: true}, reader: c, users: &requester.Reviewer{Client: c}}
	w.bind("drover-cluster-creator", "developer")
	w.bind("drover-viewer", "viewer")
	return w
}

// bind gives a user a role in the namespace of the test.
func (w *world) bind(role, name string) {
	w.Helper()
	w.must(w.Create(w.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}},
	}))
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func user(name string, groups ...string) authenticationv1.UserInfo {
	return authenticationv1.UserInfo{Username: name, Groups: append(groups, "system:authenticated")}
}

// as returns the context of a request of a user.
func (w *world) as(operation admissionv1.Operation, who authenticationv1.UserInfo) context.Context {
	request := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{Operation: operation, UserInfo: who}}
	return admission.NewContextWithRequest(w.Context(), request)
}

// create validates a new GitChange of a user.
func (w *world) create(who authenticationv1.UserInfo, change *droverv1.GitChange) error {
	_, err := w.rules.ValidateCreate(w.as(admissionv1.Create, who), change)
	return err
}

func (w *world) expect(name, want string, err error) {
	w.Helper()
	if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
		w.Errorf("%s: error is %v, want %q", name, err, want)
	}
}

const manifests = `
apiVersion: anywhere.eks.amazonaws.com/v1alpha1
kind: Cluster
metadata: {name: dev, namespace: NAMESPACE}
spec:
  kubernetesVersion: "1.36"
  managementCluster: {name: mgmt}
  controlPlaneConfiguration: {count: 1}
  workerNodeGroupConfigurations: [{name: md-0, count: 1}]
  datacenterRef: {kind: DockerDatacenterConfig, name: dev}
  gitOpsRef: {kind: FluxConfig, name: fleet}
  clusterNetwork:
    cniConfig: {cilium: {}}
    pods: {cidrBlocks: [192.168.0.0/16]}
    services: {cidrBlocks: [10.96.0.0/12]}
---
apiVersion: anywhere.eks.amazonaws.com/v1alpha1
kind: DockerDatacenterConfig
metadata: {name: dev, namespace: NAMESPACE}
spec: {}
---
apiVersion: anywhere.eks.amazonaws.com/v1alpha1
kind: FluxConfig
metadata: {name: fleet, namespace: NAMESPACE}
spec: {git: {repositoryUrl: "ssh://git@git.example.com/fleet.git"}}`

// write returns a GitChange that writes a cluster, with replacements in its manifests.
func (w *world) write(replace ...string) *droverv1.GitChange {
	w.Helper()
	change := &droverv1.GitChange{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "change"}}
	change.Spec = droverv1.GitChangeSpec{Cluster: "dev", Action: droverv1.GitWrite, FluxConfig: "fleet"}
	text := strings.NewReplacer(append(replace, "NAMESPACE", w.ns)...).Replace(manifests)
	for _, one := range strings.Split(text, "\n---\n") {
		raw, err := yaml.YAMLToJSON([]byte(one))
		w.must(err)
		change.Spec.Objects = append(change.Spec.Objects, runtime.RawExtension{Raw: raw})
	}
	return change
}

func (w *world) remove(cluster string) *droverv1.GitChange {
	change := &droverv1.GitChange{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "change"}}
	change.Spec = droverv1.GitChangeSpec{Cluster: cluster, Action: droverv1.GitRemove, FluxConfig: "fleet"}
	return change
}

func TestAGitChangeGrantsNothing(t *testing.T) {
	w := newWorld(t)
	for name, tc := range map[string]struct {
		who    authenticationv1.UserInfo
		change *droverv1.GitChange
		want   string
	}{
		"a creator writes":        {user("developer"), w.write(), ""},
		"a creator removes":       {user("developer"), w.remove("dev"), ""},
		"an administrator writes": {user("admin", "system:masters"), w.write(), ""},
		"a viewer writes":         {user("viewer"), w.write(), `user "viewer" may not create dockerdatacenterconfigs "dev"`},
		"a viewer removes":        {user("viewer"), w.remove("dev"), `user "viewer" may not delete clusters "dev"`},
		"a stranger removes":      {user("stranger"), w.remove("dev"), "may not delete"},
		"another namespace":       {user("developer"), w.write("NAMESPACE", "kube-system"), "is not the namespace of the GitChange"},
		"a management cluster":    {user("developer"), w.write("managementCluster: {name: mgmt}", "managementCluster: {name: dev}"), "only administrators may change the files of management cluster"},
		"a paused cluster": {
			user("developer"), w.write("kind: Cluster\nmetadata: {", `kind: Cluster`+"\n"+`metadata: {annotations: {anywhere.eks.amazonaws.com/paused: "true"}, `),
			"only administrators may create an object with the annotation anywhere.eks.amazonaws.com/paused",
		},
		"a cluster of a command": {
			user("developer"), w.write("kind: DockerDatacenterConfig\nmetadata: {", `kind: DockerDatacenterConfig`+"\n"+`metadata: {annotations: {anywhere.eks.amazonaws.com/managed-by-cli: "true"}, `),
			"only administrators may create an object with the annotation anywhere.eks.amazonaws.com/managed-by-cli",
		},
		"a paused cluster of an administrator": {
			user("admin", "system:masters"), w.write("kind: Cluster\nmetadata: {", `kind: Cluster`+"\n"+`metadata: {annotations: {anywhere.eks.amazonaws.com/paused: "true"}, `), "",
		},
		"an invalid spec": {user("developer"), w.write("count: 1", "count: 2"), "controlPlaneConfiguration.count"},
	} {
		t.Run(name, func(t *testing.T) { w.expect(name, tc.want, w.create(tc.who, tc.change)) })
	}
}

func TestARoleOfOneObjectIsNotEnough(t *testing.T) {
	w := newWorld(t)
	w.must(w.Create(t.Context(), &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "editor"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{anywherev1.GroupVersion.Group}, Resources: []string{"clusters", "dockerdatacenterconfigs", "fluxconfigs"}, Verbs: []string{"create"}},
		{APIGroups: []string{anywherev1.GroupVersion.Group}, Resources: []string{"dockerdatacenterconfigs", "fluxconfigs"}, Verbs: []string{"update"}},
		{APIGroups: []string{anywherev1.GroupVersion.Group}, Resources: []string{"clusters"}, ResourceNames: []string{"other"}, Verbs: []string{"update", "delete"}},
	}}))
	w.must(w.Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "editor"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "editor"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "editor"}},
	}))
	w.expect("write", `may not update clusters "dev"`, w.create(user("editor"), w.write()))
	w.expect("remove", `may not delete clusters "dev"`, w.create(user("editor"), w.remove("dev")))
	w.expect("remove another", "", w.create(user("editor"), w.remove("other")))
}

func TestRemoveHasNoObjects(t *testing.T) {
	w := newWorld(t)
	change := w.write()
	change.Spec.Action = droverv1.GitRemove
	w.expect("objects", "spec.objects: must be empty", w.create(user("developer"), change))
}

func TestOnlyAdministratorsRemoveManagementClusters(t *testing.T) {
	w := newWorld(t)
	c := &anywherev1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "mgmt"}}
	c.Spec.KubernetesVersion, c.Spec.DatacenterRef = "1.36", anywherev1.Ref{Kind: "DockerDatacenterConfig", Name: "mgmt"}
	w.must(w.Create(t.Context(), c))
	w.expect("a creator", "only administrators may change the files of management cluster", w.create(user("developer"), w.remove("mgmt")))
	w.expect("an administrator", "", w.create(user("admin", "system:masters"), w.remove("mgmt")))
}

func TestUpdatesFollowTheRulesOfTheCluster(t *testing.T) {
	w := newWorld(t)
	stored := w.write()
	var c anywherev1.Cluster
	w.must(yaml.Unmarshal(stored.Spec.Objects[0].Raw, &c))
	w.must(w.Create(t.Context(), &c))
	w.expect("no change", "", w.create(user("developer"), w.write()))
	w.expect("an immutable field", "field is immutable", w.create(user("developer"), w.write("192.168.0.0/16", "172.16.0.0/16")))
}

func TestRequestedByIsTheUserOfTheRequest(t *testing.T) {
	w := newWorld(t)
	change := w.write()
	change.Spec.RequestedBy = "admin"
	w.must(w.rules.Default(w.as(admissionv1.Create, user("developer")), change))
	if change.Spec.RequestedBy != "developer" {
		t.Errorf("requestedBy is %q", change.Spec.RequestedBy)
	}
	w.must(w.rules.Default(w.as(admissionv1.Update, user("viewer")), change))
	if change.Spec.RequestedBy != "developer" {
		t.Errorf("after an update, requestedBy is %q", change.Spec.RequestedBy)
	}
	w.must(w.Create(t.Context(), change))
	change.Spec.RequestedBy = "admin"
	if err := w.Update(t.Context(), change); !apierrors.IsInvalid(err) {
		t.Errorf("an update of the spec: %v", err)
	}
}

func TestWithoutGitOpsNothingIsAccepted(t *testing.T) {
	w := newWorld(t)
	w.rules.Enabled = false
	for name, change := range map[string]*droverv1.GitChange{"write": w.write(), "remove": w.remove("dev")} {
		err := w.create(user("admin", "system:masters"), change)
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "--gitops") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
