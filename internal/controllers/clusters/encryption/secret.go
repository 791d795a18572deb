package encryption

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
)

// stateKey is the key of the state in the Secret.
const stateKey = "state.json"

// Key returns the name of the Secret of a cluster.
func Key(cluster string) client.ObjectKey {
	return client.ObjectKey{Namespace: anywherev1.SystemNamespace, Name: anywherev1.EncryptionSecret(cluster)}
}

// Source is where control plane machines get their configuration from.
type Source struct {
	// Secret and Key hold the configuration.
	Secret, Key string
	// Sockets are the directories of the sockets of plugins.
	Sockets []string
}

// Source returns the source of a state.
func (s *State) Source(c *anywherev1.Cluster) *Source {
	out := &Source{Secret: anywherev1.EncryptionSecret(c.Name), Key: s.FileKey(c)}
	for _, p := range s.plugins(c) {
		out.Sockets = append(out.Sockets, socketDir(p.Endpoint))
	}
	return out
}

// Decode returns the state in the data of a Secret.
func Decode(data map[string][]byte) (*State, error) {
	out := &State{}
	// The error of the decoder could quote a key.
	if json.Unmarshal(data[stateKey], out) != nil || len(out.Old) == 0 || (out.Stage != Settled && out.New == nil) {
		return nil, fmt.Errorf("%s is missing or damaged", stateKey)
	}
	return out, nil
}

// Encode writes a state and the configuration of machines to a Secret. It keeps the configuration
// of the key that machines may still be created with.
func (s *State) Encode(to *corev1.Secret, c *anywherev1.Cluster, used string) error {
	state, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("encoding the state of encryption: %w", err)
	}
	config, err := encode(s.sets(c))
	if err != nil {
		return err
	}
	data := map[string][]byte{stateKey: state}
	if old, ok := to.Data[used]; ok {
		data[used] = old
	}
	data[s.FileKey(c)] = []byte(config)
	to.Data, to.Type = data, corev1.SecretTypeOpaque
	s.annotate(to)
	return nil
}

// annotate shows the state to those who may not read data, and lets clusterctl move the Secret.
func (s *State) annotate(to *corev1.Secret) {
	if to.Annotations == nil {
		to.Annotations = map[string]string{}
	}
	if to.Labels == nil {
		to.Labels = map[string]string{}
	}
	to.Labels[clusterctlv1.ClusterctlMoveLabel] = ""
	to.Annotations[anywherev1.EncryptionStageAnnotation] = string(s.Stage)
	to.Annotations[anywherev1.EncryptionRotationAnnotation] = s.Rotation
	delete(to.Annotations, anywherev1.EncryptionProblemAnnotation)
}

// Complete reports whether the data of a Secret has the configuration of its state: a spec with
// other plugins needs another one.
func (s *State) Complete(data map[string][]byte, c *anywherev1.Cluster) bool {
	return len(data[s.FileKey(c)]) > 0
}

// Older reports whether a state is older than the configuration that a control plane refers to.
func (s *State) Older(key string) bool {
	number, _, _ := strings.Cut(strings.TrimSuffix(strings.TrimPrefix(key, "config-"), ".yaml"), "-")
	revision, err := strconv.Atoi(number)
	return err == nil && revision > s.Revision
}
