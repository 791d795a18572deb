package gitops

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/git"
	"github.com/drover-dev/drover/internal/git/flux"
	"github.com/drover-dev/drover/internal/install"
	"github.com/drover-dev/drover/internal/model/gitops"
	"github.com/drover-dev/drover/internal/model/removal"
	"github.com/drover-dev/drover/internal/test/gittest"
	"github.com/drover-dev/drover/internal/test/kubetest"
)

func TestMain(m *testing.M) { os.Exit(kubetest.Main(m)) }

// newPlane returns a management plane with the kinds of Flux, and a namespace for its controllers.
func newPlane(t *testing.T) (p *Plane, system string) {
	t.Helper()
	server := kubetest.SharedWithoutWebhooks(t)
	if err := install.ApplyFlux(t.Context(), server.Config, install.Options{}); err != nil {
		t.Fatal(err)
	}
	p, err := Connect(server.Config)
	if err != nil {
		t.Fatal(err)
	}
	p.Own = server.Namespace(t)
	return p, p.Own
}

// environment returns the variables for a server.
func environment(t *testing.T, server *gittest.HTTPS, password string) func(string) string {
	t.Helper()
	ca := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(ca, server.CA, 0o600); err != nil {
		t.Fatal(err)
	}
	return func(name string) string {
		return map[string]string{flux.EnvUsername: gittest.Username, flux.EnvPassword: password, flux.EnvCAFile: ca}[name]
	}
}

// fleet returns a FluxConfig.
func fleet(namespace, url string) *anywherev1.FluxConfig {
	c := &anywherev1.FluxConfig{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "fleet"}}
	c.Spec = anywherev1.FluxConfigSpec{SystemNamespace: namespace, Branch: "main", Git: &anywherev1.GitProviderConfig{RepositoryURL: url}}
	return c
}

func (p *Plane) mustCredentials(t *testing.T, system string) *corev1.Secret {
	t.Helper()
	secret, err := p.credentials(t.Context(), system)
	if err != nil || secret == nil {
		t.Fatalf("Secret %v, %v", secret, err)
	}
	return secret
}

func TestEnableBindsVerifiedCredentials(t *testing.T) {
	p, system := newPlane(t)
	server := gittest.NewHTTPS(t)
	tip := server.Create("fleet.git").Commit("main", map[string]string{"a": "b"})
	server.Create("other.git")
	url := server.URL("fleet.git")
	e := Enabling{FluxConfig: fleet(system, url), Getenv: environment(t, server, "wrong")}
	var denied *git.AuthenticationError
	if _, err := p.Enable(t.Context(), e); !errors.As(err, &denied) {
		t.Fatalf("a wrong password: %v", err)
	}
	if secret, err := p.credentials(t.Context(), system); secret != nil || err != nil {
		t.Fatalf("credentials that don't work were stored: %v, %v", secret, err)
	}
	e.Getenv = environment(t, server, gittest.Password)
	done, err := p.Enable(t.Context(), e)
	if err != nil || done.Commit != tip || !done.RunsFlux {
		t.Fatalf("%+v, %v", done, err)
	}
	secret := p.mustCredentials(t, system)
	want := map[string]string{anywherev1.GitURLAnnotation: url, anywherev1.CredentialsNamespacesAnnotation: system}
	if diff := cmp.Diff(want, secret.Annotations); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
	if err := p.Client.Get(t.Context(), client.ObjectKey{Namespace: system, Name: "fleet"}, &anywherev1.FluxConfig{}); err != nil {
		t.Errorf("the FluxConfig: %v", err)
	}

	secret.Data[flux.KeyToken] = []byte("of the forge")
	if err := p.Client.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	e.FluxConfig, e.Namespaces = fleet(system, url), []string{"team-b"}
	if _, err := p.Enable(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	secret = p.mustCredentials(t, system)
	if got := secret.Annotations[anywherev1.CredentialsNamespacesAnnotation]; got != system+",team-b" {
		t.Errorf("a second time, it is open to %q", got)
	}
	if got := string(secret.Data[flux.KeyToken]); got != "of the forge" {
		t.Errorf("a second time, the token of the forge is %q", got)
	}
	for _, dir := range []string{"clusters/mgmt", "./fleet/", "/clusters/mgmt"} {
		e.FluxConfig = fleet(system, url)
		e.FluxConfig.Spec.ClusterConfigPath = dir
		if _, err := p.Enable(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	if got := p.mustCredentials(t, system).Annotations[anywherev1.GitPathsAnnotation]; got != "clusters/mgmt,fleet" {
		t.Errorf("open directories are %q", got)
	}
	e.FluxConfig, e.Namespaces = fleet(system, server.URL("other.git")), nil
	var replaced *ReplaceError
	if _, err := p.Enable(t.Context(), e); !errors.As(err, &replaced) {
		t.Errorf("another repository: %v", err)
	}
	e.FluxConfig, e.Replace = fleet(system, server.URL("other.git")), true
	if done, err := p.Enable(t.Context(), e); err != nil || done.Commit != "" {
		t.Errorf("%+v, %v", done, err)
	}
	want = map[string]string{anywherev1.GitURLAnnotation: server.URL("other.git"), anywherev1.CredentialsNamespacesAnnotation: system}
	secret = p.mustCredentials(t, system)
	if diff := cmp.Diff(want, secret.Annotations); diff != "" {
		t.Errorf("annotations of another repository (-want +got):\n%s", diff)
	}
	if _, kept := secret.Data[flux.KeyToken]; kept {
		t.Error("another repository got the token of the forge")
	}
}

func TestSecretOfAnotherFluxIsNotReplaced(t *testing.T) {
	p, system := newPlane(t)
	theirs := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: anywherev1.GitCredentials}, Data: map[string][]byte{"username": []byte("them")}}
	if err := p.Client.Create(t.Context(), theirs); err != nil {
		t.Fatal(err)
	}
	server := gittest.NewHTTPS(t)
	server.Create("fleet.git")
	e := Enabling{FluxConfig: fleet(system, server.URL("fleet.git")), Getenv: environment(t, server, gittest.Password)}
	if _, err := p.Enable(t.Context(), e); err == nil || !strings.Contains(err.Error(), "was not created by Drover") {
		t.Errorf("error = %v", err)
	}
	if _, err := p.Disable(t.Context(), system); err != nil {
		t.Error(err)
	}
	if got := p.mustCredentials(t, system); string(got.Data["username"]) != "them" {
		t.Errorf("their Secret has %d keys", len(got.Data))
	}
}

func TestNewKeyReplacesTheOldOneOnceItWorks(t *testing.T) {
	p, system := newPlane(t)
	private, public := gittest.NewKey(t, "ed25519", "")
	server := gittest.NewSSH(t, public)
	server.Create("fleet.git").Commit("main", map[string]string{"a": "b"})
	url, dir := server.URL("fleet.git"), t.TempDir()
	write(t, dir, "key", string(private))
	write(t, dir, "known_hosts", string(server.KnownHosts))
	env := map[string]string{flux.EnvPrivateKey: filepath.Join(dir, "key"), flux.EnvKnownHosts: filepath.Join(dir, "known_hosts")}
	enable := func() (*Enabled, error) {
		return p.Enable(t.Context(), Enabling{FluxConfig: fleet(system, url), Getenv: func(name string) string { return env[name] }})
	}
	if done, err := enable(); err != nil || done.Signed {
		t.Fatalf("%+v, %v", done, err)
	}
	signing, _ := gittest.NewKey(t, "ed25519", "open sesame")
	write(t, dir, "signing", string(signing))
	env[flux.EnvSigningKey], env[flux.EnvSigningPassphrase] = filepath.Join(dir, "signing"), "open barley"
	if _, err := enable(); err == nil || !strings.Contains(err.Error(), "reading signing key") || flux.Signs(p.mustCredentials(t, system).Data) {
		t.Fatalf("a wrong passphrase of the signing key: %v", err)
	}
	env[flux.EnvSigningPassphrase] = "open sesame"
	if done, err := enable(); err != nil || !done.Signed {
		t.Fatalf("%+v, %v", done, err)
	}
	delete(env, flux.EnvSigningKey)
	delete(env, flux.EnvSigningPassphrase)
	if done, err := enable(); err != nil || !done.Signed {
		t.Fatalf("a second time without the signing key: %+v, %v", done, err)
	}
	r := Rotation{System: system, Algorithm: "ecdsa", Interval: 10 * time.Millisecond, Getenv: func(name string) string { return env[name] }}
	ctx, cancel := context.WithCancel(t.Context())
	r.Publish = func([]byte) { time.AfterFunc(time.Second, cancel) }
	if _, err := p.Rotate(ctx, r); !errors.Is(err, context.Canceled) {
		t.Fatalf("a key that is not authorized: %v", err)
	}
	if got := p.mustCredentials(t, system).Data["identity"]; !bytes.Equal(got, private) {
		t.Fatal("the old key was replaced by one that does not work")
	}
	r.Publish = server.Authorize
	if got, err := p.Rotate(t.Context(), r); err != nil || got != url {
		t.Fatalf("%q, %v", got, err)
	}
	secret := p.mustCredentials(t, system)
	if !bytes.Equal(secret.Data["signing-key"], signing) {
		t.Error("the signing key was replaced, too")
	}
	other, _ := gittest.NewKey(t, "ed25519", "")
	write(t, dir, "other", string(other))
	env[flux.EnvSigningKey] = filepath.Join(dir, "other")
	if _, err := p.Rotate(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	if secret = p.mustCredentials(t, system); !bytes.Equal(secret.Data["signing-key"], other) || len(secret.Data["signing-passphrase"]) > 0 {
		t.Error("the signing key was not replaced by that of the environment")
	}
	if bytes.Equal(secret.Data["identity"], private) || !strings.HasPrefix(string(secret.Data["identity.pub"]), "ecdsa-") || secret.Annotations[anywherev1.GitURLAnnotation] != url {
		t.Errorf("the Secret has key %s for %s", secret.Data["identity.pub"], secret.Annotations[anywherev1.GitURLAnnotation])
	}
}

func TestRotationNeedsAConnectedRepository(t *testing.T) {
	p, system := newPlane(t)
	if _, err := p.Rotate(t.Context(), Rotation{System: system, Algorithm: "ed25519"}); !errors.Is(err, errNotConnected) {
		t.Errorf("error = %v", err)
	}
}

// cluster creates a cluster that Flux applies.
func (p *Plane) cluster(t *testing.T, namespace, name string) *anywherev1.Cluster {
	t.Helper()
	c := &anywherev1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"kustomize.toolkit.fluxcd.io/name": name}}}
	c.Spec = anywherev1.ClusterSpec{Management: ptr.To(false), GitOpsRef: &anywherev1.Ref{Kind: anywherev1.FluxConfigKind, Name: "fleet"}}
	k := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"interval": "1m", "prune": true, "path": "./" + name, "sourceRef": map[string]any{"kind": "GitRepository", "name": "flux-system"},
	}}}
	k.SetGroupVersionKind(Kustomizations)
	k.SetNamespace(namespace)
	k.SetName(name)
	k.SetLabels(map[string]string{anywherev1.GitClusterLabel: name})
	for _, o := range []client.Object{c, k} {
		if err := p.Client.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = p.Client.Delete(context.Background(), o) })
	}
	return c
}

// setCondition sets a condition of the FluxConfig.
func (p *Plane) setCondition(t *testing.T, c *anywherev1.FluxConfig, condition metav1.Condition) {
	t.Helper()
	apimeta.SetStatusCondition(&c.Status.Conditions, condition)
	if err := p.Client.Status().Update(t.Context(), c); err != nil {
		t.Fatal(err)
	}
}

func TestDisableKeepsClusters(t *testing.T) {
	p, system := newPlane(t)
	one := p.cluster(t, system, "kept")
	done, err := p.Disable(t.Context(), system)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{system + "/kept"}, done.Clusters); diff != "" {
		t.Errorf("clusters (-want +got):\n%s", diff)
	}
	if err := p.Client.Get(t.Context(), client.ObjectKeyFromObject(one), one); err != nil || one.Labels["kustomize.toolkit.fluxcd.io/name"] != "" {
		t.Errorf("the cluster has labels %v, %v", one.Labels, err)
	}
	left, err := p.list(t.Context(), Kustomizations, client.InNamespace(system))
	if err != nil || len(left) > 0 {
		t.Errorf("%d Kustomizations are left, %v", len(left), err)
	}
}

func TestConfirmAcceptsOnlyARemovalThatWaits(t *testing.T) {
	p, system := newPlane(t)
	config := fleet(system, "ssh://git@git.example.com/fleet")
	if err := p.Client.Create(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	wanted := p.cluster(t, system, "wanted")
	apimeta.SetStatusCondition(&wanted.Status.Conditions, metav1.Condition{Type: anywherev1.Ready, Status: metav1.ConditionTrue, Reason: "Well"})
	if err := p.Client.Status().Update(t.Context(), wanted); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Confirm(t.Context(), system, "wanted"); err == nil || !strings.Contains(err.Error(), "needs no confirmation") {
		t.Errorf("a cluster that is in Git: %v", err)
	}
	p.setCondition(t, config, metav1.Condition{Type: anywherev1.ClustersApplied, Status: metav1.ConditionFalse, Reason: anywherev1.RemovalUnconfirmedReason, Message: "Cluster wanted was removed"})
	c, err := p.Confirm(t.Context(), system, "wanted")
	if err != nil || c.Annotations[anywherev1.GitRemovalAnnotation] != removal.Confirmed {
		t.Errorf("%+v, %v", c, err)
	}
	if _, err := p.Confirm(t.Context(), system, "wanted"); err == nil {
		t.Error("a removal is confirmed twice")
	}
}

func TestStatusShowsRevisionsAndProblems(t *testing.T) {
	p, system := newPlane(t)
	config := fleet(system, "ssh://git@git.example.com/fleet")
	if err := p.Client.Create(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	p.cluster(t, system, "shown")
	for _, kind := range []string{anywherev1.RepositoryConnected, anywherev1.RepositoryFetched} {
		p.setCondition(t, config, metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: "Well"})
	}
	p.setCondition(t, config, metav1.Condition{Type: anywherev1.ClustersApplied, Status: metav1.ConditionFalse, Reason: anywherev1.RemovalUnconfirmedReason, Message: "Cluster shown was removed"})
	got, err := p.Status(t.Context(), system)
	if err != nil {
		t.Fatal(err)
	}
	want := []Status{{
		Namespace: system, FluxConfig: "fleet", URL: "ssh://git@git.example.com/fleet", Branch: "main",
		State: anywherev1.RemovalUnconfirmedReason, Message: "Cluster shown was removed", Unconfirmed: true,
		Clusters: []ClusterStatus{{Name: "shown", State: stateUnknown, Message: "Waiting for the controller"}},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
}

func TestStatusComparesThePlaneWithTheNewestCommit(t *testing.T) {
	p, system := newPlane(t)
	server := gittest.NewHTTPS(t)
	repository := server.Create("fleet.git")
	spec := "apiVersion: anywhere.eks.amazonaws.com/v1alpha1\nkind: Cluster\nmetadata:\n  name: differs\nspec:\n  management: true\n  gitOpsRef: {kind: FluxConfig, name: fleet}\n"
	tip := repository.Commit("main", map[string]string{"clusters/mgmt/workload-clusters/differs/eksa-cluster.yaml": spec})
	e := Enabling{FluxConfig: fleet(system, server.URL("fleet.git")), Getenv: environment(t, server, gittest.Password)}
	e.FluxConfig.Spec.ClusterConfigPath = "clusters/mgmt"
	if _, err := p.Enable(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	p.cluster(t, system, "differs")
	p.cluster(t, system, "unknown")
	compared := func() Status {
		t.Helper()
		all, err := p.Status(t.Context(), system)
		if err != nil || len(all) != 1 || len(all[0].Clusters) != 2 {
			t.Fatalf("%+v, %v", all, err)
		}
		if err := p.Compare(t.Context(), all); err != nil {
			t.Fatal(err)
		}
		return all[0]
	}
	got := compared()
	want := []gitops.FieldChange{{Object: "Cluster/differs", Path: "spec.management", Old: "false", New: "true"}}
	if diff := cmp.Diff(want, got.Clusters[0].Differences); diff != "" || got.Compared != tip || got.Clusters[0].Missing || !got.Clusters[1].Missing {
		t.Errorf("%+v, differences (-want +got):\n%s", got, diff)
	}
	repository.Commit("main", map[string]string{"clusters/mgmt/workload-clusters/differs/eksa-cluster.yaml": strings.Replace(spec, "true", "false", 1)})
	if got := compared(); len(got.Clusters[0].Differences) > 0 || got.CompareError != "" {
		t.Errorf("after a commit without differences: %+v", got)
	}
	server.Stop()
	if got := compared(); got.Compared != "" || got.CompareError == "" {
		t.Errorf("without the Git server: %+v", got)
	}
}

func TestStatusOfAKustomization(t *testing.T) {
	k := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{
		"lastAppliedRevision": "main@sha1:0123",
		"conditions": []any{map[string]any{
			"type": "Ready", "status": "False", "reason": "BuildFailed", "message": "no such file", "lastTransitionTime": "2026-01-01T00:00:00Z",
		}},
	}}}
	want := ClusterStatus{Name: "one", Revision: "main@sha1:0123", State: "BuildFailed", Message: "no such file"}
	if diff := cmp.Diff(want, clusterStatus("one", k)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := clusterStatus("one", nil); got.State != stateNotInGit {
		t.Errorf("without a Kustomization: %+v", got)
	}
}
