package cluster

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/controllers/clusters/build"
	"github.com/drover-dev/drover/internal/controllers/clusters/encryption"
	"github.com/drover-dev/drover/internal/model/owner"
	"github.com/drover-dev/drover/internal/test/kubetest"
)

// management creates a management cluster.
func (w *world) management(name string) {
	w.Helper()
	w.make(name)
	w.change(name, func(c *anywherev1.Cluster) { c.Spec.Management = ptr.To(true) })
}

func (w *world) keys(name string) *corev1.Secret {
	w.Helper()
	s := &corev1.Secret{}
	w.must(w.Get(w.Context(), system(name+"-encryption"), s))
	return s
}

func (w *world) controlPlane(name string) *controlplanev1.KubeadmControlPlane {
	w.Helper()
	k := &controlplanev1.KubeadmControlPlane{}
	w.must(w.Get(w.Context(), system(name), k))
	return k
}

// file returns the configuration that new control plane machines get.
func (w *world) file(name string) string {
	w.Helper()
	secret, key := encryption.Reference(w.controlPlane(name))
	if secret == "" {
		return ""
	}
	text, ok := w.keys(name).Data[key]
	if secret != name+"-encryption" || !ok {
		w.Fatalf("machines get key %q of Secret %q", key, secret)
	}
	return string(text)
}

// rollOut plays Cluster API: it has one control plane machine, which is up to date.
func (w *world) rollOut(name string) {
	w.Helper()
	k := w.controlPlane(name)
	k.Status.ObservedGeneration = k.Generation
	k.Status.Initialization.ControlPlaneInitialized = ptr.To(true)
	for _, count := range []**int32{&k.Status.Replicas, &k.Status.ReadyReplicas, &k.Status.AvailableReplicas, &k.Status.UpToDateReplicas} {
		*count = ptr.To[int32](1)
	}
	meta.SetStatusCondition(&k.Status.Conditions, metav1.Condition{Type: controlplanev1.KubeadmControlPlaneAvailableCondition, Status: metav1.ConditionTrue, Reason: "Available"})
	w.must(w.Status().Update(w.Context(), k))
	labels := build.Labels(w.cluster(name))
	labels[clusterv1.MachineControlPlaneLabel] = ""
	m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: anywherev1.SystemNamespace, Name: name + "-machine", Labels: labels}}
	m.Spec.ClusterName = name
	m.Spec.Bootstrap.DataSecretName = ptr.To("data")
	m.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{APIGroup: "infrastructure.cluster.x-k8s.io", Kind: "PacketMachine", Name: name}
	w.must(client.IgnoreAlreadyExists(w.Create(w.Context(), m)))
}

// counting counts requests that write Secrets, and may deny them.
type counting struct {
	http.RoundTripper

	patches atomic.Int64
	deny    bool
}

func (c *counting) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodPatch || !strings.Contains(r.URL.Path, "/secrets/") {
		return c.RoundTripper.RoundTrip(r)
	}
	c.patches.Add(1)
	if !c.deny {
		return c.RoundTripper.RoundTrip(r)
	}
	answer := httptest.NewRecorder()
	answer.Header().Set("Content-Type", "application/json")
	answer.WriteHeader(http.StatusForbidden)
	fmt.Fprint(answer, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"admission webhook \"guard\" denied the request","code":403}`)
	return answer.Result(), nil
}

// rewriteWith runs the controller that rewrites Secrets once.
func (w *world) rewriteWith(name string, c *counting) error {
	w.Helper()
	r := &encryption.Controller{Client: w.Client, Live: w.Client, Connect: func(context.Context, client.ObjectKey) (metadata.Interface, error) {
		config := rest.CopyConfig(kubetest.SharedWithoutWebhooks(w.T).Config)
		config.Wrap(func(next http.RoundTripper) http.RoundTripper {
			c.RoundTripper = next
			return c
		})
		return metadata.NewForConfig(config)
	}}
	_, err := r.Reconcile(w.Context(), ctrl.Request{NamespacedName: system(name + "-encryption")})
	return err
}

// rewrite runs the controller that rewrites Secrets once, and returns how many it wrote.
func (w *world) rewrite(name string) int64 {
	w.Helper()
	c := &counting{}
	w.must(w.rewriteWith(name, c))
	return c.patches.Load()
}

func (w *world) encrypted(name string) string {
	w.Helper()
	c := meta.FindStatusCondition(w.cluster(name).Status.Conditions, anywherev1.SecretsEncrypted)
	if c == nil {
		return ""
	}
	return fmt.Sprintf("%s %s", c.Status, c.Message)
}

// providers returns the first letters of the providers of a configuration, in order.
func (w *world) providers(text string) string {
	w.Helper()
	var config struct {
		Resources []struct{ Providers []map[string]any }
	}
	w.must(yaml.Unmarshal([]byte(text), &config))
	var out []string
	for _, set := range config.Resources {
		for _, p := range set.Providers {
			for name := range p {
				out = append(out, name)
			}
		}
	}
	return strings.Join(out, " ")
}

func TestManagementClustersEncryptSecrets(t *testing.T) {
	w := newWorld(t)
	w.management("sealed")
	w.reconcile("sealed")
	secret := w.keys("sealed")
	if got := w.providers(w.file("sealed")); got != "secretbox" || !owner.Owns(w.cluster("sealed"), secret) {
		t.Errorf("providers %q, labels %v", got, secret.Labels)
	}
	if _, moves := secret.Labels[clusterctlv1.ClusterctlMoveLabel]; !moves {
		t.Error("clusterctl does not move the keys")
	}
	if got := w.encrypted("sealed"); got != "True " {
		t.Errorf("condition %q", got)
	}
	state, err := encryption.Decode(secret.Data)
	w.must(err)
	key := state.Old[0].Secretbox.Keys[0].Secret
	for _, o := range []client.Object{w.cluster("sealed"), w.controlPlane("sealed")} {
		text, err := yaml.Marshal(o)
		if err != nil || strings.Contains(string(text), key) {
			t.Errorf("%T contains the key, error %v", o, err)
		}
	}
	for _, e := range w.takeEvents() {
		if strings.Contains(e, key) {
			t.Errorf("event %q", e)
		}
	}
	before := w.objects("sealed")
	w.reconcile("sealed")
	if diff := cmp.Diff(before, w.objects("sealed")); diff != "" {
		t.Errorf("the second reconcile wrote:\n%s", diff)
	}
}

func TestNewerManagerDoesNotReplaceMachines(t *testing.T) {
	w := newWorld(t)
	w.predates("predating")
	names, generation := w.names("predating"), w.controlPlane("predating").Generation
	w.reconcile("predating")
	w.rollOut("predating")
	w.reconcile("predating")
	if diff := cmp.Diff(names, w.names("predating")); diff != "" || w.controlPlane("predating").Generation != generation || w.file("predating") != "" || w.encrypted("predating") != "" {
		t.Errorf("condition %q, objects (-before +after):\n%s", w.encrypted("predating"), diff)
	}
}

// predates creates a management cluster as a Drover without encryption did, one version back.
func (w *world) predates(name string) {
	w.Helper()
	w.make(name)
	w.change(name, func(c *anywherev1.Cluster) { c.Spec.KubernetesVersion = "1.35" })
	w.reconcile(name)
	w.change(name, func(c *anywherev1.Cluster) { c.Spec.Management = ptr.To(true) })
}

func TestUpgradeEncryptsSecrets(t *testing.T) {
	w := newWorld(t)
	w.predates("upgraded")
	w.rollOut("upgraded")
	w.change("upgraded", func(c *anywherev1.Cluster) { c.Spec.KubernetesVersion = "1.36" })
	w.reconcile("upgraded")
	if got := w.providers(w.file("upgraded")); got != "identity secretbox" {
		t.Errorf("at first, providers %q", got)
	}
	w.reconcile("upgraded") // Nothing was rolled out yet.
	if got := w.encrypted("upgraded"); !strings.Contains(got, "step 1 of 3") {
		t.Errorf("condition %q", got)
	}
	w.rollOut("upgraded")
	w.reconcile("upgraded")
	if got := w.providers(w.file("upgraded")); got != "secretbox identity" {
		t.Errorf("then, providers %q", got)
	}
	if n := w.rewrite("upgraded"); n != 0 {
		t.Errorf("got %d Secrets rewritten before all API servers have the key, want none", n)
	}
	w.rollOut("upgraded")
	w.reconcile("upgraded")
	if got := w.encrypted("upgraded"); !strings.Contains(got, "step 3 of 3") || meta.IsStatusConditionTrue(w.cluster("upgraded").Status.Conditions, anywherev1.Ready) {
		t.Errorf("condition %q", got)
	}
	ref := w.controlPlane("upgraded").Generation
	if n := w.rewrite("upgraded"); n == 0 {
		t.Error("no Secret was rewritten")
	}
	w.reconcile("upgraded")
	if got := w.providers(w.file("upgraded")); got != "secretbox" || w.controlPlane("upgraded").Generation != ref || w.encrypted("upgraded") != "True " {
		t.Errorf("finally, providers %q, condition %q", got, w.encrypted("upgraded"))
	}
}

// rotate requests a rotation and carries it out.
func (w *world) rotate(name, request string) {
	w.Helper()
	w.beginRotation(name, request)
	w.rewrite(name)
	w.reconcile(name)
}

// beginRotation requests a rotation and carries it out until Secrets wait to be rewritten.
func (w *world) beginRotation(name, request string) {
	w.Helper()
	w.rollOut(name)
	secret := w.keys(name)
	secret.Annotations[anywherev1.EncryptionRotateAnnotation] = request
	w.must(w.Update(w.Context(), secret))
	for range 2 {
		w.reconcile(name)
		if got := w.providers(w.file(name)); got != "secretbox secretbox" {
			w.Errorf("providers %q", got)
		}
		w.rollOut(name)
	}
	w.reconcile(name)
}

func TestRotationIsRequestedOnTheSecret(t *testing.T) {
	w := newWorld(t)
	w.management("rotated")
	w.reconcile("rotated")
	first := w.file("rotated")
	w.rotate("rotated", "once")
	secret := w.keys("rotated")
	if text := w.file("rotated"); text == first || w.providers(text) != "secretbox" || len(secret.Data) != 2 {
		t.Errorf("providers %q, %d keys in the Secret", w.providers(text), len(secret.Data))
	}
	if secret.Annotations[anywherev1.EncryptionRotationAnnotation] != "once" || secret.Annotations[anywherev1.EncryptionStageAnnotation] != anywherev1.EncryptionSettled {
		t.Errorf("annotations %v", secret.Annotations)
	}
	before := w.objects("rotated")
	w.reconcile("rotated")
	if diff := cmp.Diff(before, w.objects("rotated")); diff != "" {
		t.Errorf("the request was answered twice:\n%s", diff)
	}
}

func TestLostKeysAreNotReplaced(t *testing.T) {
	w := newWorld(t)
	w.management("mislaid")
	w.reconcile("mislaid")
	secret := w.keys("mislaid")
	w.must(w.Delete(t.Context(), secret))
	w.reconcile("mislaid")
	if got := w.failure("mislaid"); !strings.Contains(got, `Secret "mislaid-encryption" with the encryption keys of the cluster not found`) {
		t.Errorf("failure %q", got)
	}
	if err := w.Get(t.Context(), client.ObjectKeyFromObject(secret), secret); !apierrors.IsNotFound(err) {
		t.Errorf("new keys, error %v", err)
	}
	secret.ResourceVersion, secret.UID = "", ""
	w.must(w.Create(t.Context(), secret))
	w.reconcile("mislaid")
	if got := w.failure("mislaid"); got != "" {
		t.Errorf("failure %q with the Secret restored", got)
	}
	secret.Data["state.json"] = []byte("{")
	w.must(w.Update(t.Context(), secret))
	w.reconcile("mislaid")
	if got := w.failure("mislaid"); !strings.Contains(got, "state.json is missing or damaged") {
		t.Errorf("failure %q with damaged keys", got)
	}
}

func TestConditionExplainsUnencryptedSecrets(t *testing.T) {
	w := newWorld(t)
	w.management("denied")
	w.reconcile("denied")
	w.beginRotation("denied", "once")
	for range 2 {
		if err := w.rewriteWith("denied", &counting{deny: true}); err == nil {
			t.Error("got no error, want one: no Secret was written")
		}
		w.reconcile("denied")
		if got := w.encrypted("denied"); !strings.Contains(got, "step 3 of 3") || !strings.Contains(got, `admission webhook "guard" denied the request`) {
			t.Errorf("condition %q", got)
		}
	}
	w.rewrite("denied")
	w.reconcile("denied")
	if got := w.encrypted("denied"); got != "True " {
		t.Errorf("condition %q once Secrets can be written", got)
	}
}

// A machine that is created before the control plane refers to the new configuration needs the old.
func TestRewritingKeepsTheConfigurationInUse(t *testing.T) {
	w := newWorld(t)
	w.management("busy")
	w.reconcile("busy")
	w.beginRotation("busy", "once")
	w.change("busy", func(c *anywherev1.Cluster) { c.Spec.EtcdEncryption = kms("vault", "configmaps") })
	w.rewrite("busy")
	if got := w.providers(w.file("busy")); got != "secretbox secretbox" {
		t.Errorf("providers %q", got)
	}
	w.reconcile("busy")
	if got := w.providers(w.file("busy")); got != "secretbox kms identity" {
		t.Errorf("then, providers %q", got)
	}
}

// A Secret from before a rotation lacks the key that encrypts all Secrets now.
func TestOutdatedKeysAreNotRolledOut(t *testing.T) {
	w := newWorld(t)
	w.management("restored")
	w.reconcile("restored")
	w.beginRotation("restored", "once")
	backup := w.keys("restored").Data
	w.rewrite("restored")
	w.reconcile("restored")
	w.rotate("restored", "twice")
	secret, current, generation := w.keys("restored"), w.keys("restored").Data, w.controlPlane("restored").Generation
	secret.Data = backup
	w.must(w.Update(t.Context(), secret))
	for range 2 {
		w.reconcile("restored")
		if got := w.failure("restored"); !strings.Contains(got, `Secret "restored-encryption" with the encryption keys is older than the configuration config-5.yaml of the control plane; restore it from a backup`) {
			t.Errorf("failure %q", got)
		}
		if got := w.controlPlane("restored").Generation; got != generation {
			t.Errorf("generation %d of the control plane after %d", got, generation)
		}
	}
	if n := w.rewrite("restored"); n != 0 {
		t.Errorf("%d Secrets were rewritten", n)
	}
	if diff := cmp.Diff(backup, w.keys("restored").Data); diff != "" {
		t.Errorf("the restored Secret changed:\n%s", diff)
	}
	secret = w.keys("restored")
	secret.Data = current
	w.must(w.Update(t.Context(), secret))
	w.reconcile("restored")
	if got := w.failure("restored"); got != "" || w.controlPlane("restored").Generation != generation {
		t.Errorf("failure %q with the current Secret", got)
	}
}

// kms returns the encryption of resources with a plugin.
func kms(name string, resources ...string) []anywherev1.EtcdEncryption {
	return []anywherev1.EtcdEncryption{{Resources: resources, Providers: []anywherev1.EtcdEncryptionProvider{{KMS: &anywherev1.KMS{Name: name, SocketListenAddress: "unix:///run/kms/" + name + ".sock"}}}}}
}

// An older Drover stored Secrets under the name in the spec, which other resources can't use then.
func TestConfigurationThatAPIServersRejectIsNotRolledOut(t *testing.T) {
	w := newWorld(t)
	w.management("widened")
	w.reconcile("widened")
	secret := w.keys("widened")
	plugin := apiserverv1.KMSConfiguration{APIVersion: "v2", Name: "vault", Endpoint: "unix:///run/kms/vault.sock"}
	state := &encryption.State{Stage: encryption.Settled, Revision: 1, Old: []apiserverv1.ProviderConfiguration{{KMS: &plugin}}}
	w.must(state.Encode(secret, w.cluster("widened"), ""))
	w.must(w.Update(t.Context(), secret))
	generation := w.controlPlane("widened").Generation
	w.change("widened", func(c *anywherev1.Cluster) { c.Spec.EtcdEncryption = kms("vault", "secrets", "configmaps") })
	w.reconcile("widened")
	if got := w.failure("widened"); !strings.Contains(got, "duplicate KMS provider name") || w.controlPlane("widened").Generation != generation {
		t.Errorf("failure %q, generation %d after %d", got, w.controlPlane("widened").Generation, generation)
	}
}

// Admission rejects these changes too, but a Cluster may be written without it.
func TestWhatEncryptsSecretsIsNotTakenAway(t *testing.T) {
	w := newWorld(t)
	w.make("plugged")
	w.change("plugged", func(c *anywherev1.Cluster) { c.Spec.EtcdEncryption = kms("vault", "secrets") })
	w.reconcile("plugged")
	w.management("sealed-by-hand")
	w.reconcile("sealed-by-hand")
	for name, test := range map[string]struct {
		change func(*anywherev1.Cluster)
		want   string
	}{
		"plugged": {func(c *anywherev1.Cluster) { c.Spec.EtcdEncryption = nil }, `plugin "vault" encrypted Secrets`},
		"sealed-by-hand": {func(c *anywherev1.Cluster) {
			c.Spec.ControlPlaneConfiguration.APIServerExtraArgs = map[string]string{"encryption-provider-config": "/mine"}
		}, "Argument encryption-provider-config can't be set by hand"},
	} {
		generation := w.controlPlane(name).Generation
		w.change(name, test.change)
		w.reconcile(name)
		if got := w.failure(name); !strings.Contains(got, test.want) || w.controlPlane(name).Generation != generation {
			t.Errorf("%s: failure %q, generation %d after %d", name, got, w.controlPlane(name).Generation, generation)
		}
	}
}

func TestForeignKeysAreNotUsed(t *testing.T) {
	w := newWorld(t)
	w.management("claimed")
	w.must(w.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: anywherev1.SystemNamespace, Name: "claimed-encryption"}}))
	w.reconcile("claimed")
	if got := w.failure("claimed"); !strings.Contains(got, `Secret "claimed-encryption" already exists`) {
		t.Errorf("failure %q", got)
	}
	err := w.Get(t.Context(), system("claimed"), &controlplanev1.KubeadmControlPlane{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("a control plane with foreign keys, error %v", err)
	}
}

// askForEncryption makes a cluster encrypt Secrets with a key of its own.
func askForEncryption(c *anywherev1.Cluster) {
	c.Spec.EtcdEncryption = []anywherev1.EtcdEncryption{{Resources: []string{"secrets"}, Providers: []anywherev1.EtcdEncryptionProvider{{Secretbox: &anywherev1.Secretbox{}}}}}
}

func TestKeysAreDeletedWithTheirCluster(t *testing.T) {
	w := newWorld(t)
	w.make("gone")
	w.change("gone", askForEncryption)
	w.reconcile("gone")
	if got := w.providers(w.file("gone")); got != "secretbox" {
		t.Errorf("providers %q", got)
	}
	w.must(w.Delete(t.Context(), w.cluster("gone")))
	for range 20 {
		w.reconcile("gone")
		if err := w.Get(t.Context(), system("gone-encryption"), &corev1.Secret{}); apierrors.IsNotFound(err) {
			return
		}
	}
	t.Errorf("the keys remain: %v", w.cluster("gone").Status.Conditions)
}
