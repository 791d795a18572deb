package install

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/packages/values"
)

// access points the release to the Secret that opens the mirror, where there is one: the cluster's own, or the one for all. Drover's own
// registry needs none.
func (c *Controller) access(ctx context.Context, s *scope, wanted *addonsv1.HelmReleaseProxySpec) error {
	if host(wanted.RepoURL) == host(c.Registry) {
		return nil
	}
	for _, namespace := range []string{packagesv1.NamespacePrefix + s.target.Cluster, packagesv1.Namespace} {
		key := client.ObjectKey{Namespace: namespace, Name: values.MirrorSecret}
		data, err := c.Values.Data(ctx, "Secret", key)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("reading Secret %q: %w", key, err)
		}
		point(wanted, key, data)
		return nil
	}
	return nil
}

// point uses what is in the Secret.
func point(wanted *addonsv1.HelmReleaseProxySpec, key client.ObjectKey, data map[string][]byte) {
	ref := corev1.SecretReference{Namespace: key.Namespace, Name: key.Name}
	for _, name := range []string{addonsv1.DefaultCredentialsKey, corev1.DockerConfigJsonKey} {
		if len(data[name]) > 0 {
			wanted.Credentials = &addonsv1.Credentials{Secret: ref, Key: name}
			break
		}
	}
	tls := &addonsv1.TLSConfig{InsecureSkipTLSVerify: string(data[insecureKey]) == "true"}
	if len(data[addonsv1.CAKey]) > 0 {
		tls.CASecretRef = &ref
	}
	if *tls != (addonsv1.TLSConfig{}) {
		wanted.TLSConfig = tls
	}
}

// insecureKey says that the mirror's certificate is not looked at.
const insecureKey = "insecure"

// host is that of an address, with or without what says how to speak to it.
func host(address string) string {
	if !strings.Contains(address, "://") {
		address = "oci://" + address
	}
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Host
}

// ofMirror are the Packages whose charts are opened with a Secret.
func (c *Controller) ofMirror(ctx context.Context, o client.Object) []reconcile.Request {
	if o.GetName() != values.MirrorSecret {
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
