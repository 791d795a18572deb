package encryption

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"
	"k8s.io/utils/ptr"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
)

// simulation is a cluster whose machines are replaced one at a time.
type simulation struct {
	*testing.T

	state *State
	facts Facts
	// members are the configurations of the API servers, names of providers in order.
	members [][]string
	// stored are the providers that encrypted the stored Secrets.
	stored map[string]bool
	keys   int
}

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

func simulate(t *testing.T, c *anywherev1.Cluster) *simulation {
	t.Helper()
	s := &simulation{T: t, stored: map[string]bool{}}
	s.facts = Facts{Cluster: c, Version: "v1.35.4", NewKey: func() (apiserverv1.Key, error) {
		s.keys++
		return apiserverv1.Key{Name: fmt.Sprintf("key-%d", s.keys), Secret: "c2VjcmV0"}, nil
	}}
	return s
}

// existing gives the cluster a control plane from before it had keys.
func (s *simulation) existing() *simulation {
	s.Helper()
	s.facts.ControlPlane = &controlplanev1.KubeadmControlPlane{Spec: controlplanev1.KubeadmControlPlaneSpec{Version: s.facts.Version}}
	if text, err := Plain(s.facts.Cluster); err != nil {
		s.Fatal(err)
	} else if text != "" {
		s.facts.ControlPlane.Spec.KubeadmConfigSpec.Files = []bootstrapv1.File{{Path: File, Content: text}}
	}
	now := namesOf(currentOf(s.facts.ControlPlane))
	s.members = [][]string{now, now, now}
	s.write(0)
	return s
}

func namesOf(providers []apiserverv1.ProviderConfiguration) []string {
	var out []string
	for _, p := range providers {
		switch {
		case p.Secretbox != nil:
			out = append(out, p.Secretbox.Keys[0].Name)
		case p.KMS != nil:
			out = append(out, p.KMS.Name)
		default:
			out = append(out, "none")
		}
	}
	return out
}

// write lets an API server write a Secret, and every API server read all of them.
func (s *simulation) write(member int) {
	s.Helper()
	s.stored[s.members[member][0]] = true
	for i, m := range s.members {
		for by := range s.stored {
			if !slices.Contains(m, by) {
				s.Fatalf("in state %v, API server %d with %v can't read what %s encrypted", s.state, i, m, by)
			}
		}
	}
}

// step computes the next state and reports whether it changed.
func (s *simulation) step() bool {
	s.Helper()
	next, err := Next(s.state, s.facts)
	if err != nil {
		s.Fatal(err)
	}
	changed := next != s.state
	if changed {
		s.reencode(next)
	}
	return changed
}

// reencode stores a state and reads it again, as after a restart.
func (s *simulation) reencode(next *State) {
	s.Helper()
	secret := &corev1.Secret{}
	if err := next.Encode(secret, s.facts.Cluster, ""); err != nil {
		s.Fatal(err)
	}
	state, err := Decode(secret.Data)
	if err != nil {
		s.Fatal(err)
	}
	if diff := cmp.Diff(next.Providers(), state.Providers()); diff != "" {
		s.Fatalf("providers changed when they were stored:\n%s", diff)
	}
	s.state = state
}

// rollOut replaces API servers one after the other, while all of them write.
func (s *simulation) rollOut() {
	s.Helper()
	source := s.state.Source(s.facts.Cluster)
	k := &controlplanev1.KubeadmControlPlane{Spec: controlplanev1.KubeadmControlPlaneSpec{Version: s.facts.Version}}
	k.Spec.KubeadmConfigSpec.Files = []bootstrapv1.File{{Path: File, ContentFrom: bootstrapv1.FileSource{Secret: bootstrapv1.SecretFileSource{Name: source.Secret, Key: source.Key}}}}
	s.facts.ControlPlane, s.facts.RolledOut = k, false
	for i := range s.members {
		if s.step() {
			s.Fatalf("the state became %v during a rollout", s.state)
		}
		s.members[i] = namesOf(s.state.Providers())
		for j := range s.members {
			s.write(j)
		}
	}
	s.facts.RolledOut = true
}

// finish runs a change to its end and returns the stages.
func (s *simulation) finish() []string {
	s.Helper()
	var out []string
	for range 20 {
		changed := s.step()
		if s.state == nil {
			return out
		}
		if changed {
			out = append(out, fmt.Sprintf("%s %v", s.state.Stage, namesOf(s.state.Providers())))
		}
		_, key := Reference(s.facts.ControlPlane)
		switch {
		case s.state.Stage == Rewriting:
			s.stored = map[string]bool{s.members[0][0]: true}
			s.reencode(s.state.Finish())
			out = append(out, fmt.Sprintf("%s %v", s.state.Stage, namesOf(s.state.Providers())))
		case key != s.state.FileKey(s.facts.Cluster):
			if s.facts.ControlPlane == nil {
				first := namesOf(s.state.Providers())
				s.members = [][]string{first, first, first}
			}
			s.rollOut()
		case !changed:
			return out
		}
	}
	s.Fatalf("the state is still %v", s.state)
	return nil
}

func (s *simulation) want(stages ...string) {
	s.Helper()
	if diff := cmp.Diff(stages, s.finish()); diff != "" {
		s.Fatalf("stages (-want +got):\n%s", diff)
	}
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
	with(s.facts.Cluster, []string{"secrets", "configmaps"}, vault("vault"))
	s.want("Adding [key-1 vault]", "Switching [vault key-1]", "Rewriting [vault key-1]", "Settled [vault]")
	s.facts.Rotation = "a"
	s.want() // The plugin rotates its own key.
	moved := vault("vault")
	moved.KMS.SocketListenAddress = "unix:///run/elsewhere/s.sock"
	with(s.facts.Cluster, []string{"secrets"}, moved)
	s.want("Settled [vault]")
	s.facts.Cluster.Spec.EtcdEncryption = nil
	s.want("Adding [vault key-2]", "Switching [key-2 vault]", "Rewriting [key-2 vault]", "Settled [key-2]")
}

func TestPluginOfAnOlderDroverStaysReadable(t *testing.T) {
	s := simulate(t, with(management(), []string{"secrets"}, vault("vault"))).existing()
	s.facts.Version = "v1.36.3"
	s.want() // As before.
	s.facts.Cluster.Spec.EtcdEncryption = nil
	s.want("Adding [vault none key-1]", "Switching [key-1 vault none]", "Rewriting [key-1 vault none]", "Settled [key-1]")
}

func TestPluginsForOtherResourcesLeaveSecretsAlone(t *testing.T) {
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
        secret: c2VjcmV0
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

func TestAPIServersConfiguredByHandAreLeftAlone(t *testing.T) {
	c := management()
	c.Spec.ControlPlaneConfiguration.APIServerExtraArgs = map[string]string{Argument: "/etc/mine.yaml"}
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
	key, err := NewKey(time.Now())
	if err != nil || len(key.Secret) != 44 {
		t.Fatalf("key of %d characters, error %v", len(key.Secret), err)
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
