package encryption

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"
	"k8s.io/apiserver/pkg/server/options/encryptionconfig"
	"k8s.io/apiserver/pkg/storage/value"
	kmsapi "k8s.io/kms/apis/v2"
	"k8s.io/kms/pkg/service"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
)

// simulation is a cluster whose machines are replaced one at a time. Its API servers validate their
// configurations, encrypt and decrypt with the code of kube-apiserver.
type simulation struct {
	*testing.T

	state *State
	// secret holds the state and the configurations of machines.
	secret *corev1.Secret
	facts  Facts
	// members are the API servers.
	members []encryptionconfig.StaticTransformers
	// stored is what they stored, by resource.
	stored map[string][][]byte
	// socket is the socket of the plugin, which all addresses of a spec mean.
	socket string
	keys   int
}

func simulate(t *testing.T, c *anywherev1.Cluster) *simulation {
	t.Helper()
	s := &simulation{T: t, secret: &corev1.Secret{}, stored: map[string][][]byte{}, socket: servePlugin(t)}
	s.facts = Facts{Cluster: c, Version: "v1.35.4", NewKey: func() (apiserverv1.Key, error) {
		s.keys++
		return apiserverv1.Key{Name: fmt.Sprintf("key-%d", s.keys), Secret: base64.StdEncoding.EncodeToString(fmt.Appendf(nil, "%032d", s.keys))}, nil
	}}
	return s
}

// flipping is a plugin that only flips bits: whether data can be read is decided by names.
type flipping struct{}

func (flipping) Status(context.Context) (*service.StatusResponse, error) {
	return &service.StatusResponse{Version: "v2", Healthz: "ok", KeyID: "1"}, nil
}

func (flipping) Encrypt(_ context.Context, _ string, data []byte) (*service.EncryptResponse, error) {
	return &service.EncryptResponse{Ciphertext: flip(data), KeyID: "1"}, nil
}

func (flipping) Decrypt(_ context.Context, _ string, r *service.DecryptRequest) ([]byte, error) {
	return flip(r.Ciphertext), nil
}

func flip(data []byte) []byte {
	out := slices.Clone(data)
	for i := range out {
		out[i] ^= 0xff
	}
	return out
}

// servePlugin runs a plugin and returns its socket.
func servePlugin(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "kms") //nolint:usetesting // The directory of the test is too long for a socket.
	if err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(dir, "s.sock")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	kmsapi.RegisterKeyManagementServiceServer(server, service.NewGRPCService("", 0, flipping{}))
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() {
		server.Stop()
		_ = os.RemoveAll(dir)
	})
	return socket
}

var address = regexp.MustCompile(`unix://\S+`)

// start starts an API server with a configuration.
func (s *simulation) start(config string) encryptionconfig.StaticTransformers {
	s.Helper()
	if config == "" {
		return nil
	}
	file := filepath.Join(s.TempDir(), "config.yaml")
	if err := os.WriteFile(file, []byte(address.ReplaceAllString(config, "unix://"+s.socket)), 0o600); err != nil {
		s.Fatal(err)
	}
	loaded, err := encryptionconfig.LoadEncryptionConfig(s.Context(), file, false, "")
	if err != nil {
		s.Fatalf("in state %v, API servers don't start: %v", s.state, err)
	}
	return loaded.Transformers
}

// existing gives the cluster a control plane from before it had keys.
func (s *simulation) existing() *simulation {
	s.Helper()
	s.facts.ControlPlane = &controlplanev1.KubeadmControlPlane{Spec: controlplanev1.KubeadmControlPlaneSpec{Version: s.facts.Version}}
	text, err := Plain(s.facts.Cluster)
	if err != nil {
		s.Fatal(err)
	}
	if text != "" {
		s.facts.ControlPlane.Spec.KubeadmConfigSpec.Files = []bootstrapv1.File{{Path: File, Content: text}}
	}
	s.populate(text)
	return s
}

// populate starts three API servers with the same configuration.
func (s *simulation) populate(config string) {
	s.Helper()
	one := s.start(config)
	s.members = []encryptionconfig.StaticTransformers{one, one, one}
	s.write(0, secrets)
	s.write(0, "configmaps")
	s.read(0, "configmaps")
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

const content = "what is stored"

func (s *simulation) transformer(member int, resource string) value.Transformer {
	return s.members[member].TransformerForResource(schema.GroupResource{Resource: resource})
}

// write lets an API server write an object.
func (s *simulation) write(member int, resource string) {
	s.Helper()
	data, err := s.transformer(member, resource).TransformToStorage(s.Context(), []byte(content), value.DefaultContext(resource))
	if err != nil {
		s.Fatalf("in state %v, API server %d can't write %s: %v", s.state, member, resource, err)
	}
	if !slices.ContainsFunc(s.stored[resource], func(other []byte) bool { return bytes.Equal(prefix(other), prefix(data)) }) {
		s.stored[resource] = append(s.stored[resource], data)
	}
}

// prefix returns the part of stored data that names its provider.
func prefix(data []byte) []byte {
	if !bytes.HasPrefix(data, []byte("k8s:enc:")) {
		return nil
	}
	return bytes.Join(bytes.SplitN(data, []byte(":"), 6)[:5], []byte(":"))
}

// read lets an API server read all that is stored.
func (s *simulation) read(member int, resource string) {
	s.Helper()
	for _, data := range s.stored[resource] {
		got, _, err := s.transformer(member, resource).TransformFromStorage(s.Context(), data, value.DefaultContext(resource))
		if err != nil || string(got) != content {
			s.Fatalf("in state %v, API server %d can't read what %s encrypted: %v", s.state, member, prefix(data), err)
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
	_, used := Reference(s.facts.ControlPlane)
	if err := next.Encode(s.secret, s.facts.Cluster, used); err != nil {
		s.Fatal(err)
	}
	state, err := Decode(s.secret.Data)
	if err != nil {
		s.Fatal(err)
	}
	if diff := cmp.Diff(next.Providers(), state.Providers()); diff != "" {
		s.Fatalf("providers changed when they were stored:\n%s", diff)
	}
	s.state = state
}

// rollOut replaces API servers one after the other, while all of them write and read.
func (s *simulation) rollOut() {
	s.Helper()
	s.refer()
	for i := range s.members {
		if s.step() {
			s.Fatalf("got another step to state %v during a rollout, want none", s.state)
		}
		s.replace(i)
	}
	for i := range s.members { // Resources other than Secrets can be read only after a rollout.
		s.write(i, "configmaps")
		s.read(i, "configmaps")
	}
	s.facts.RolledOut = true
}

// refer makes the control plane refer to the configuration of the state.
func (s *simulation) refer() {
	s.Helper()
	if !s.state.Complete(s.secret.Data, s.facts.Cluster) {
		s.reencode(s.state)
	}
	source := s.state.Source(s.facts.Cluster)
	k := &controlplanev1.KubeadmControlPlane{Spec: controlplanev1.KubeadmControlPlaneSpec{Version: s.facts.Version}}
	k.Spec.KubeadmConfigSpec.Files = []bootstrapv1.File{{Path: File, ContentFrom: bootstrapv1.FileSource{Secret: bootstrapv1.SecretFileSource{Name: source.Secret, Key: source.Key}}}}
	s.facts.ControlPlane, s.facts.RolledOut = k, false
}

// replace replaces an API server by one with the current configuration.
func (s *simulation) replace(member int) {
	s.Helper()
	s.members[member] = s.start(string(s.secret.Data[s.state.FileKey(s.facts.Cluster)]))
	for i := range s.members {
		s.write(i, secrets)
	}
	for i := range s.members {
		s.read(i, secrets)
	}
}

// rewrite encrypts all Secrets with the new provider.
func (s *simulation) rewrite() {
	s.Helper()
	s.stored[secrets] = nil
	s.write(0, secrets)
	s.reencode(s.state.Finish())
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
			out = append(out, s.describe())
		}
		_, key := Reference(s.facts.ControlPlane)
		switch {
		case s.state.Stage == Rewriting:
			s.rewrite()
			out = append(out, s.describe())
		case key != s.state.FileKey(s.facts.Cluster):
			if s.facts.ControlPlane == nil {
				s.populate(string(s.secret.Data[s.state.FileKey(s.facts.Cluster)]))
			}
			s.rollOut()
		case !changed:
			return out
		}
	}
	s.Fatalf("the state is still %v", s.state)
	return nil
}

func (s *simulation) describe() string {
	return fmt.Sprintf("%s %v", s.state.Stage, namesOf(s.state.Providers()))
}

func (s *simulation) want(stages ...string) {
	s.Helper()
	if diff := cmp.Diff(stages, s.finish()); diff != "" {
		s.Fatalf("stages (-want +got):\n%s", diff)
	}
}
