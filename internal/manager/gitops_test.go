package manager_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	droverv1 "github.com/drover-dev/drover/api/drover/v1alpha1"
	"github.com/drover-dev/drover/config"
	"github.com/drover-dev/drover/internal/install"
	"github.com/drover-dev/drover/internal/test/gittest"
	"github.com/drover-dev/drover/internal/test/kubetest"
	"github.com/drover-dev/drover/internal/test/managertest"
)

// gitOpsClient returns a client for the kinds of GitOps.
func gitOpsClient(t *testing.T, cfg *rest.Config) client.Client {
	t.Helper()
	c := newClient(t, cfg)
	for _, add := range []func(*runtime.Scheme) error{anywherev1.AddToScheme, droverv1.AddToScheme, sourcev1.AddToScheme, kustomizev1.AddToScheme} {
		if err := add(c.Scheme()); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

const gitOpsCluster = `
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
spec: {}`

// newGitChange returns a GitChange that claims to be somebody else's, with objects of a namespace.
func newGitChange(t *testing.T, namespace, objects string) *droverv1.GitChange {
	t.Helper()
	change := &droverv1.GitChange{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "create-dev-"}}
	change.Spec = droverv1.GitChangeSpec{Cluster: "dev", Action: droverv1.GitWrite, FluxConfig: "fleet", RequestedBy: "admin"}
	for _, one := range strings.Split(strings.ReplaceAll(gitOpsCluster, "NAMESPACE", objects), "\n---\n") {
		raw, err := yaml.YAMLToJSON([]byte(one))
		if err != nil {
			t.Fatal(err)
		}
		change.Spec.Objects = append(change.Spec.Objects, runtime.RawExtension{Raw: raw})
	}
	return change
}

func TestGitChangesAreDeniedWithoutGitOps(t *testing.T) {
	server, _ := ready(t)
	err := gitOpsClient(t, server.Config).Create(t.Context(), newGitChange(t, "default", "default"))
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "--gitops") {
		t.Errorf("error %v", err)
	}
}

// startGitOps starts an API server with Flux's API, and a manager with --gitops that has no other
// privileges than those of its roles.
func startGitOps(t *testing.T) *kubetest.Server {
	t.Helper()
	server, webhook := kubetest.Start(t), kubetest.FreeAddress(t)
	if err := install.Apply(t.Context(), server.Config, install.Options{WebhookURL: "https://" + webhook}); err != nil {
		t.Fatal(err)
	}
	if err := install.ApplyFlux(t.Context(), server.Config, install.Options{}); err != nil {
		t.Fatal(err)
	}
	kubeconfig := kubetest.Kubeconfig(t, managertest.Identity(t, server))
	launch(t, kubeconfig, "--install=false", "--gitops", "--management-cluster=mgmt", "--webhook-addr="+webhook).awaitReady(t)
	return server
}

func TestACreatorChangesAClusterThroughGit(t *testing.T) {
	server := startGitOps(t)
	git := gittest.NewHTTPS(t)
	repository := git.Create("fleet.git")
	admin, namespace := gitOpsClient(t, server.Config), server.Namespace(t)
	who := rest.CopyConfig(server.Config)
	who.Impersonate = rest.ImpersonationConfig{UserName: "jane", Groups: []string{"system:authenticated"}}
	jane := gitOpsClient(t, who)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(admin.Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "jane"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "drover-cluster-creator"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "jane"}},
	}))
	if err := jane.Create(t.Context(), newGitChange(t, "default", "default")); !apierrors.IsForbidden(err) {
		t.Errorf("a change in another namespace: %v", err)
	}
	if err := jane.Create(t.Context(), newGitChange(t, namespace, "default")); !apierrors.IsInvalid(err) {
		t.Errorf("a change for another namespace: %v", err)
	}
	must(jane.Create(t.Context(), &anywherev1.FluxConfig{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "fleet"}, Spec: anywherev1.FluxConfigSpec{Git: &anywherev1.GitProviderConfig{RepositoryURL: git.URL("fleet.git")}},
	}))
	change := newGitChange(t, namespace, namespace)
	must(jane.Create(t.Context(), change))
	if change.Spec.RequestedBy != "jane" {
		t.Errorf("requested by %q", change.Spec.RequestedBy)
	}
	awaitReason := func(kind, reason string) {
		t.Helper()
		eventually(t, func() error {
			if err := jane.Get(t.Context(), client.ObjectKeyFromObject(change), change); err != nil {
				return err
			}
			if c := meta.FindStatusCondition(change.Status.Conditions, kind); c == nil || c.Reason != reason {
				return fmt.Errorf("condition %s is %+v", kind, c)
			}
			return nil
		})
	}
	awaitReason(droverv1.GitCommitted, droverv1.GitDeniedReason) // It waits for an administrator.
	must(admin.Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: config.FluxNamespace, Name: anywherev1.GitCredentials, Annotations: map[string]string{
			anywherev1.GitURLAnnotation: git.URL("fleet"), anywherev1.GitPathsAnnotation: "clusters/mgmt",
			anywherev1.CredentialsNamespacesAnnotation: namespace,
		}},
		Data: map[string][]byte{"username": []byte(gittest.Username), "password": []byte(gittest.Password), "ca.crt": git.CA},
	}))
	awaitReason(droverv1.GitCommitted, droverv1.GitCommittedReason)
	if tip := repository.Tip(gittest.Branch); change.Status.Commit != tip {
		t.Errorf("commit %q, the branch has %q", change.Status.Commit, tip)
	}
	actAsFlux(t, admin, namespace, "main@sha1:"+change.Status.Commit, git.URL("fleet.git"))
	awaitReason(droverv1.GitChangeReady, droverv1.GitAppliedReason)
}

// actAsFlux fetches and applies a revision when the manager has asked for it.
func actAsFlux(t *testing.T, c client.Client, namespace, revision, url string) {
	t.Helper()
	source := &sourcev1.GitRepository{
		ObjectMeta: metav1.ObjectMeta{Namespace: config.FluxNamespace, Name: anywherev1.GitCredentials},
		Spec:       sourcev1.GitRepositorySpec{URL: url, Interval: metav1.Duration{Duration: time.Hour}},
	}
	if err := client.IgnoreAlreadyExists(c.Create(t.Context(), source)); err != nil { // The manager may have created it.
		t.Fatal(err)
	}
	eventually(t, func() error {
		err := c.Get(t.Context(), client.ObjectKeyFromObject(source), source)
		if err == nil && source.Annotations[fluxmeta.ReconcileRequestAnnotation] == "" {
			err = fmt.Errorf("no fetch is requested: %v", source.Annotations)
		}
		return err
	})
	k := &kustomizev1.Kustomization{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "dev", Labels: map[string]string{anywherev1.GitClusterLabel: "dev"}},
		Spec: kustomizev1.KustomizationSpec{
			Interval: metav1.Duration{Duration: time.Hour}, Prune: true,
			SourceRef: kustomizev1.CrossNamespaceSourceReference{Kind: sourcev1.GitRepositoryKind, Name: source.Name, Namespace: source.Namespace},
		},
	}
	if err := c.Create(t.Context(), k); err != nil {
		t.Fatal(err)
	}
	k.Status.LastAppliedRevision = revision
	if err := c.Status().Update(t.Context(), k); err != nil {
		t.Fatal(err)
	}
}
