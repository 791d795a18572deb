package encryption

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"
	"k8s.io/utils/ptr"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/base/atrest"
	"github.com/drover-dev/drover/internal/model/spec"
)

func management() *anywherev1.Cluster {
	return &anywherev1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "mgmt"}, Spec: anywherev1.ClusterSpec{Management: ptr.To(true)}}
}

func managed() *anywherev1.Cluster {
	return &anywherev1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "one"}, Spec: anywherev1.ClusterSpec{Management: ptr.To(false)}}
}

func with(c *anywherev1.Cluster, resources []string, p anywherev1.EtcdEncryptionProvider) *anywherev1.Cluster {
	c.Spec.EtcdEncryption = []anywherev1.EtcdEncryption{{Resources: resources, Providers: []anywherev1.EtcdEncryptionProvider{p}}}
	return c
}

func vault(name string) anywherev1.EtcdEncryptionProvider {
	return anywherev1.EtcdEncryptionProvider{KMS: &anywherev1.KMS{Name: name, SocketListenAddress: "unix:///run/" + name + "/s.sock", Timeout: &metav1.Duration{Duration: time.Second}}}
}

func box() anywherev1.EtcdEncryptionProvider {
	return anywherev1.EtcdEncryptionProvider{Secretbox: &anywherev1.Secretbox{}}
}

func TestNewManagementClusterEncryptsFromTheStart(t *testing.T) {
	s := simulate(t, management())
	s.want("Settled [key-1]")
	s.facts.Rotation = "a"
	s.want("Adding [key-1 key-2]", "Switching [key-2 key-1]", "Rewriting [key-2 key-1]", "Settled [key-2]")
	s.want()
	s.facts.Rotation = "b"
	s.want("Adding [key-2 key-3]", "Switching [key-3 key-2]", "Rewriting [key-3 key-2]", "Settled [key-3]")
}

func TestExistingManagementClusterEncryptsAtItsUpgrade(t *testing.T) {
	s := simulate(t, management()).existing()
	s.facts.RolledOut = true
	s.want() // The manager is newer, and nothing else.
	s.facts.Version = "v1.36.3"
	s.want("Adding [none key-1]", "Switching [key-1 none]", "Rewriting [key-1 none]", "Settled [key-1]")
	s.facts.Version = "v1.37.0"
	s.want()
}

func TestWorkloadClustersEncryptOnRequest(t *testing.T) {
	simulate(t, managed()).want()
	s := simulate(t, managed()).existing()
	s.facts.Version = "v1.36.3"
	s.want()
	simulate(t, with(managed(), []string{"secrets"}, box())).want("Settled [key-1]")
	s = simulate(t, managed()).existing()
	with(s.facts.Cluster, []string{"secrets"}, box())
	s.want("Adding [none key-1]", "Switching [key-1 none]", "Rewriting [key-1 none]", "Settled [key-1]")
	s.facts.Cluster.Spec.EtcdEncryption = nil
	s.want() // They stay encrypted.
}

func TestPluginsReplaceKeysAndViceVersa(t *testing.T) {
	s := simulate(t, management())
	s.want("Settled [key-1]")
	with(s.facts.Cluster, []string{"secrets"}, vault("vault"))
	s.want("Adding [key-1 vault-secrets]", "Switching [vault-secrets key-1]", "Rewriting [vault-secrets key-1]", "Settled [vault-secrets]")
	s.facts.Rotation = "a"
	s.want() // The plugin rotates its own key.
	moved := vault("vault")
	moved.KMS.SocketListenAddress = "unix:///run/elsewhere/s.sock"
	with(s.facts.Cluster, []string{"secrets"}, moved)
	s.want("Settled [vault-secrets]")
	s.facts.Cluster.Spec.EtcdEncryption = nil
	s.want("Adding [vault-secrets key-2]", "Switching [key-2 vault-secrets]", "Rewriting [key-2 vault-secrets]", "Settled [key-2]")
}

// Otherwise API servers don't start: they reject a configuration that names a plugin twice.
func TestPluginForSecretsAndOthersHasTwoNames(t *testing.T) {
	for _, resources := range [][]string{{"secrets", "configmaps"}, {"configmaps", "secrets"}, {"*."}, {"*.*"}} {
		s := simulate(t, management())
		s.want("Settled [key-1]")
		with(s.facts.Cluster, resources, vault("vault"))
		s.want("Adding [key-1 vault-secrets]", "Switching [vault-secrets key-1]", "Rewriting [vault-secrets key-1]", "Settled [vault-secrets]")
	}
}

func TestPluginForSecretsLearnsOtherResources(t *testing.T) {
	s := simulate(t, management())
	s.want("Settled [key-1]")
	with(s.facts.Cluster, []string{"configmaps"}, vault("vault"))
	s.want()
	with(s.facts.Cluster, []string{"secrets", "configmaps"}, vault("vault"))
	s.want("Adding [key-1 vault-secrets]", "Switching [vault-secrets key-1]", "Rewriting [vault-secrets key-1]", "Settled [vault-secrets]")
	with(s.facts.Cluster, []string{"*.*"}, vault("vault"))
	s.want()
}

// brokenPlugin is a management cluster whose first new machine does not start, because its plugin
// does not work.
func brokenPlugin(t *testing.T, c *anywherev1.Cluster) *simulation {
	t.Helper()
	s := simulate(t, c)
	s.want("Settled [key-1]")
	wrong := vault("vault")
	wrong.KMS.SocketListenAddress = "unix:///run/wrong/s.sock"
	with(s.facts.Cluster, []string{"secrets"}, wrong)
	s.step()
	if got := s.describe(); got != "Adding [key-1 vault-secrets]" {
		t.Fatalf("state %s", got)
	}
	s.refer()
	if s.step() {
		t.Fatalf("got another step to state %v, want none", s.state)
	}
	return s
}

func TestBrokenPluginCanBeCorrected(t *testing.T) {
	s := brokenPlugin(t, management())
	_, before := Reference(s.facts.ControlPlane)
	with(s.facts.Cluster, []string{"secrets"}, vault("vault"))
	s.want("Adding [key-1 vault-secrets]", "Switching [vault-secrets key-1]", "Rewriting [vault-secrets key-1]", "Settled [vault-secrets]")
	if s.state.Old[0].KMS.Endpoint != "unix:///run/vault/s.sock" || s.state.Older(before) {
		t.Errorf("plugin %v, state %v after file %s", s.state.Old[0].KMS, s.state, before)
	}
	s = brokenPlugin(t, management())
	with(s.facts.Cluster, []string{"secrets"}, vault("other"))
	s.want("Adding [key-1 other-secrets]", "Switching [other-secrets key-1]", "Rewriting [other-secrets key-1]", "Settled [other-secrets]")
}

func TestBrokenPluginCanBeGivenUp(t *testing.T) {
	s := brokenPlugin(t, management())
	_, before := Reference(s.facts.ControlPlane)
	s.facts.Cluster.Spec.EtcdEncryption = nil
	s.want("Settled [key-1]")
	if _, after := Reference(s.facts.ControlPlane); before == after || s.state.Older(before) {
		t.Errorf("the machine with the plugin is not replaced: file %s after %s", after, before)
	}
	s = brokenPlugin(t, with(managed(), []string{"secrets"}, box()))
	with(s.facts.Cluster, []string{"secrets"}, box())
	s.want("Settled [key-1]")
}

// From Switching on, Secrets may be encrypted with the new provider.
func TestChangeIsNotGivenUpOnceItEncrypts(t *testing.T) {
	s := simulate(t, management())
	s.want("Settled [key-1]")
	with(s.facts.Cluster, []string{"secrets"}, vault("vault"))
	s.step()
	s.rollOut()
	s.step()
	s.facts.Cluster.Spec.EtcdEncryption = nil
	s.want("Rewriting [vault-secrets key-1]", "Settled [vault-secrets]",
		"Adding [vault-secrets key-2]", "Switching [key-2 vault-secrets]", "Rewriting [key-2 vault-secrets]", "Settled [key-2]")
}

// older returns the state of a cluster whose Secrets are stored under the name in the spec.
func older(t *testing.T) *simulation {
	t.Helper()
	s := simulate(t, with(management(), []string{"secrets"}, vault("vault"))).existing()
	s.reencode(&State{Stage: Settled, Revision: 4, Old: []apiserverv1.ProviderConfiguration{{KMS: kms(vault("vault").KMS)}}})
	s.rollOut()
	return s
}

func TestNameOfAnOlderDroverIsKept(t *testing.T) {
	s := older(t)
	s.want() // A newer Drover alone replaces no machine.
	moved := vault("vault")
	moved.KMS.SocketListenAddress = "unix:///run/elsewhere/s.sock"
	with(s.facts.Cluster, []string{"secrets"}, moved)
	s.want("Settled [vault]")
	s.facts.Cluster.Spec.EtcdEncryption = nil
	s.want("Adding [vault key-1]", "Switching [key-1 vault]", "Rewriting [key-1 vault]", "Settled [key-1]")
}

// A configuration that API servers reject is not stored, so that no machine gets it.
func TestRejectedConfigurationIsNotStored(t *testing.T) {
	s := older(t)
	with(s.facts.Cluster, []string{"secrets", "configmaps"}, vault("vault"))
	secret := s.secret.DeepCopy()
	err := s.state.Encode(secret, s.facts.Cluster, "")
	if err == nil || !strings.Contains(err.Error(), "resources[1].providers[0].kms.name: duplicate KMS provider name") {
		t.Errorf("got error %v, want one that contains %q", err, "resources[1].providers[0].kms.name: duplicate KMS provider name")
	}
	if diff := cmp.Diff(s.secret, secret); diff != "" {
		t.Errorf("the Secret changed:\n%s", diff)
	}
	if _, err := Plain(with(managed(), []string{"Secrets"}, vault("vault"))); err == nil {
		t.Error("a resource with a capital letter was accepted")
	}
}

func TestPluginOfAnOlderDroverStaysReadable(t *testing.T) {
	s := simulate(t, with(management(), []string{"secrets"}, vault("vault"))).existing()
	s.facts.Version = "v1.36.3"
	s.want() // As before.
	s.facts.Cluster.Spec.EtcdEncryption = nil
	s.want("Adding [vault none key-1]", "Switching [key-1 vault none]", "Rewriting [key-1 vault none]", "Settled [key-1]")
}

func TestPluginOfClusterWithoutKeyIsReplacedInSteps(t *testing.T) {
	for _, c := range []*anywherev1.Cluster{management(), managed()} {
		s := simulate(t, with(c, []string{"secrets"}, vault("vault"))).existing()
		s.want()
		with(c, []string{"secrets", "configmaps"}, vault("other"))
		s.want("Adding [vault none other-secrets]", "Switching [other-secrets vault none]", "Rewriting [other-secrets vault none]", "Settled [other-secrets]")
		s = simulate(t, with(c, []string{"secrets"}, vault("vault"))).existing()
		with(c, []string{"secrets"}, vault("other"))
		s.step()
		s.refer()
		with(c, []string{"secrets"}, vault("vault"))
		s.want("Settled [vault none]")
	}
}

func TestPluginThatEncryptedSecretsIsNotDropped(t *testing.T) {
	s := simulate(t, with(managed(), []string{"secrets"}, vault("vault"))).existing()
	s.facts.Cluster.Spec.EtcdEncryption = nil
	if next, err := Next(nil, s.facts); err == nil || !strings.Contains(err.Error(), `plugin "vault" encrypted Secrets, which could not be read without it`) {
		t.Errorf("state %v, error %v", next, err)
	}
}

func TestPluginsForOtherResourcesKeepSecretsUnchanged(t *testing.T) {
	s := simulate(t, with(management(), []string{"configmaps"}, vault("vault")))
	s.want("Settled [key-1]")
	text, err := encode(s.state.sets(s.facts.Cluster))
	if err != nil {
		t.Fatal(err)
	}
	want := `apiVersion: apiserver.config.k8s.io/v1
kind: EncryptionConfiguration
resources:
- providers:
  - secretbox:
      keys:
      - name: key-1
        secret: MDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDE=
  resources:
  - secrets
- providers:
  - kms:
      apiVersion: v2
      endpoint: unix:///run/vault/s.sock
      name: vault
      timeout: 1s
  - identity: {}
  resources:
  - configmaps
`
	if diff := cmp.Diff(want, text); diff != "" {
		t.Errorf("configuration (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"/run/vault"}, s.state.Source(s.facts.Cluster).Sockets); diff != "" {
		t.Errorf("sockets (-want +got):\n%s", diff)
	}
}

func TestManuallyConfiguredAPIServersAreNotChanged(t *testing.T) {
	c := management()
	c.Spec.ControlPlaneConfiguration.APIServerExtraArgs = map[string]string{spec.EncryptionArgument: "/etc/mine.yaml"}
	simulate(t, c).want()
}

func TestEveryRevisionHasItsOwnFile(t *testing.T) {
	c := management()
	s := &State{Stage: Adding, Revision: 3, Old: []apiserverv1.ProviderConfiguration{identity()}, New: &apiserverv1.ProviderConfiguration{}}
	if a, b := s.FileKey(c), s.to(Switching, 4).FileKey(c); a != "config-3.yaml" || b != "config-4.yaml" {
		t.Errorf("files %q and %q", a, b)
	}
	if s.to(Rewriting, 3).FileKey(c) != s.to(Settled, 3).FileKey(c) {
		t.Error("machines are replaced at the end of a change")
	}
	for key, want := range map[string]bool{"config-4.yaml": true, "config-4-0a1b2c3d.yaml": true, "config-3.yaml": false, "": false, "hosts-0.toml": false} {
		if got := s.Older(key); got != want {
			t.Errorf("older than %q: %t", key, got)
		}
	}
}

func TestSecretKeepsWhatMachinesMayNeed(t *testing.T) {
	c := management()
	key, err := atrest.NewKey(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	secret := &corev1.Secret{}
	s := (&State{Old: []apiserverv1.ProviderConfiguration{identity()}}).begin(apiserverv1.ProviderConfiguration{
		Secretbox: &apiserverv1.SecretboxConfiguration{Keys: []apiserverv1.Key{key}},
	})
	for _, next := range []*State{s, s.to(Switching, 2)} {
		if err := next.Encode(secret, c, "config-1.yaml"); err != nil {
			t.Fatal(err)
		}
	}
	if secret.Data["config-1.yaml"] == nil || secret.Data["config-2.yaml"] == nil || secret.Annotations[anywherev1.EncryptionStageAnnotation] != "Switching" {
		t.Errorf("%d keys, annotations %v", len(secret.Data), secret.Annotations)
	}
	for name, value := range secret.Annotations {
		if strings.Contains(value, key.Secret) {
			t.Errorf("annotation %s has the key", name)
		}
	}
	if text := fmt.Sprintf("%v %+v", s, s); strings.Contains(text, key.Secret) {
		t.Errorf("printed as %s", text)
	}
	if _, err := Decode(map[string][]byte{stateKey: []byte(`{"stage":"` + key.Secret)}); err == nil || strings.Contains(err.Error(), key.Secret) {
		t.Errorf("damaged state: %v", err)
	}
}
