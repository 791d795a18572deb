package install

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/controllers/packages/mirror"
	"github.com/drover-dev/drover/internal/model/spec"
)

// access sets the Secret with the credentials of the mirror: the one of the cluster, or the shared
// one if an administrator has bound it to the namespace of the cluster's owner.
func (c *Controller) access(ctx context.Context, s *scope, wanted *addonsv1.HelmReleaseProxySpec) error {
	own, behind := c.Places.Host(s.registry())
	for _, namespace := range []string{packagesv1.NamespacePrefix + s.target.Cluster, packagesv1.Namespace} {
		key := client.ObjectKey{Namespace: namespace, Name: mirror.Credentials}
		found, err := c.Values.Get(ctx, "Secret", key)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("reading Secret %q: %w", key, err)
		}
		shared := namespace == packagesv1.Namespace
		if shared && spec.DenyNamespace(found.Meta, s.tenant) != "" || !shared && s.foreignNamespace {
			continue
		}
		data := found.Data
		if mirror.Serves(data, own) {
			useSecret(wanted, key, data)
			return nil
		}
		if mirror.Serves(data, behind) {
			useSecret(wanted, key, data)
			trustOnly(wanted)
			return nil
		}
	}
	return nil
}

// useSecret sets the credentials and the TLS settings in a Secret.
func useSecret(wanted *addonsv1.HelmReleaseProxySpec, key client.ObjectKey, data map[string][]byte) {
	ref := corev1.SecretReference{Namespace: key.Namespace, Name: key.Name}
	for _, name := range []string{addonsv1.DefaultCredentialsKey, corev1.DockerConfigJsonKey} {
		if len(data[name]) > 0 {
			wanted.Credentials = &addonsv1.Credentials{Secret: ref, Key: name}
			break
		}
	}
	tls := &addonsv1.TLSConfig{InsecureSkipTLSVerify: string(data[mirror.InsecureKey]) == "true"}
	if len(data[addonsv1.CAKey]) > 0 {
		tls.CASecretRef = &ref
	}
	if *tls != (addonsv1.TLSConfig{}) {
		wanted.TLSConfig = tls
	}
}

// trustOnly keeps the verification of certificates, because the settings of a mirror also apply to
// the registry behind it.
func trustOnly(wanted *addonsv1.HelmReleaseProxySpec) {
	if wanted.TLSConfig == nil {
		return
	}
	wanted.TLSConfig.InsecureSkipTLSVerify = false
	if wanted.TLSConfig.CASecretRef == nil {
		wanted.TLSConfig = nil
	}
}

// ofMirror returns the Packages whose charts are pulled with a Secret.
func (c *Controller) ofMirror(ctx context.Context, o client.Object) []reconcile.Request {
	if o.GetName() != mirror.Credentials {
		return nil
	}
	if cluster, ok := strings.CutPrefix(o.GetNamespace(), packagesv1.NamespacePrefix); ok {
		return c.packagesOf(ctx, cluster)
	}
	if o.GetNamespace() != packagesv1.Namespace {
		return nil
	}
	return c.all(ctx)
}
