package lifecycle

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/model/spec"
	"github.com/drover-dev/drover/internal/operate/lifecycle/phase"
)

// Environment variables with the credentials of a registry mirror.
const (
	registryUsername = "REGISTRY_USERNAME"
	registryPassword = "REGISTRY_PASSWORD"
)

// registryCredentials returns the credentials of the mirror, nil if the environment has none, and
// whether the mirror requires any.
func (m *Management) registryCredentials() (secret *corev1.Secret, needed bool) {
	mirror := m.Config.Cluster.Spec.RegistryMirrorConfiguration
	if mirror == nil || !mirror.Authenticate {
		return nil, false
	}
	username, password := os.Getenv(registryUsername), os.Getenv(registryPassword)
	if username == "" || password == "" {
		return nil, true
	}
	secret = &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: anywherev1.SystemNamespace, Name: anywherev1.RegistryCredentials},
		Data:       map[string][]byte{"username": []byte(username), "password": []byte(password)},
	}
	m.bindRegistry(secret)
	return secret, true
}

// checkRegistry rejects a mirror that requires credentials which the environment does not have.
func (m *Management) checkRegistry(_ context.Context, p *phase.Progress) []error {
	if secret, needed := m.registryCredentials(); secret == nil && needed && !p.Resumed() {
		return []error{fmt.Errorf("the registry mirror requires credentials: set %s and %s in the environment", registryUsername, registryPassword)}
	}
	return nil
}

// writeRegistry writes the credentials of the mirror to where the controllers read them.
func (m *Management) writeRegistry(ctx context.Context, c client.Client) error {
	wanted, _ := m.registryCredentials()
	if wanted == nil {
		return nil
	}
	live := &corev1.Secret{}
	err := c.Get(ctx, client.ObjectKeyFromObject(wanted), live)
	switch {
	case apierrors.IsNotFound(err):
		err = c.Create(ctx, wanted, client.FieldOwner(anywherev1.FieldManagerCLI))
	case err == nil && !m.bindRegistry(live) && maps.EqualFunc(live.Data, wanted.Data, bytes.Equal):
	case err == nil:
		live.Data = wanted.Data
		err = c.Update(ctx, live, client.FieldOwner(anywherev1.FieldManagerCLI))
	}
	if err != nil {
		return fmt.Errorf("writing the credentials of the registry mirror: %w", err)
	}
	return nil
}

// bindRegistry adds the namespace and the mirror of the management cluster to those that the
// credentials are bound to. It reports whether one was missing.
func (m *Management) bindRegistry(secret *corev1.Secret) bool {
	c := m.Config.Cluster
	namespace := spec.AddNamespace(&secret.ObjectMeta, cmp.Or(c.Namespace, metav1.NamespaceDefault))
	endpoint := spec.AddEndpoint(&secret.ObjectMeta, c.Spec.RegistryMirrorConfiguration.Address())
	return namespace || endpoint
}
