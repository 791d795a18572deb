package bootstrap

import (
	"errors"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/config"
	"github.com/drover-dev/drover/internal/metal"
	"github.com/drover-dev/drover/internal/metal/access"
)

const (
	// SystemNamespace has the objects of clusters, and credentials.
	SystemNamespace = anywherev1.SystemNamespace
	// MetalSecret has the credentials for machines on this host.
	MetalSecret = anywherev1.LocalCredentials
	// ProjectKey is the project that machines are ordered in.
	ProjectKey = "PROJECT_ID"
)

// Metal is the metal API of a host, as the host and its machines reach it.
type Metal struct {
	access.Credentials

	Project string
}

// ReadMetal reads the endpoint and token of the metal of a home.
func ReadMetal(h metal.Home) (Metal, error) {
	e, err := h.ReadEndpoint()
	if err != nil {
		return Metal{}, err
	}
	if e.Machines == "" || e.Outdated() {
		return Metal{}, errors.New("metal is not reachable from machines: it was started by an older Drover, or has no local machines; run `drover metal stop` and `drover up --metal local`")
	}
	token, err := h.Token(e.Project)
	if err != nil {
		return Metal{}, err
	}
	ca, err := e.TrustedCA()
	return Metal{Credentials: access.Credentials{URL: e.MachinesAPIURL(), Token: token, CA: string(ca)}, Project: e.Project}, err
}

// Secret returns the credentials under the keys that PacketClusters and Deployments read.
func (m Metal) Secret(namespace, name string) *corev1.Secret {
	secret := newSecret(namespace, name, m.Data())
	secret.Data[ProjectKey] = []byte(m.Project)
	secret.Labels[anywherev1.CredentialsLabel] = "true"
	return secret
}

func newSecret(namespace, name string, data map[string][]byte) *corev1.Secret {
	return &corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{config.LabelPartOf: config.PartOf}},
		Data:       data,
	}
}

// secrets returns those that the manager needs.
func (o Options) secrets() ([]*corev1.Secret, error) {
	var all []*corev1.Secret
	if o.Metal != nil {
		mine := o.Metal.Secret(SystemNamespace, MetalSecret)
		// clusterctl move takes it along.
		mine.Labels[clusterctlv1.ClusterctlMoveLabel] = ""
		all = append(all, mine, o.Metal.Secret(config.Namespace, config.CredentialsSecret))
	}
	if o.BundleKey != "" {
		key, err := os.ReadFile(o.BundleKey)
		if err != nil {
			return nil, fmt.Errorf("reading the signing key of bundles: %w", err)
		}
		all = append(all, newSecret(config.Namespace, config.BundleKeySecret, map[string][]byte{config.BundleKeyFile: key}))
	}
	return all, nil
}
