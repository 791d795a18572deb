package backup

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"

	"github.com/google/go-containerregistry/pkg/authn"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/base/backup/settings"
	"github.com/drover-dev/drover/internal/base/backup/storage"
	"github.com/drover-dev/drover/internal/base/pki"
	"github.com/drover-dev/drover/internal/base/version"
	"github.com/drover-dev/drover/internal/metal/access"
	packet "github.com/drover-dev/drover/internal/metal/client"
)

// projectKey is the project in the credentials for machines of a host.
const projectKey = "PROJECT_ID"

// openMetal returns the storage of the metal service that has the machines.
func (c *Controller) openMetal(ctx context.Context, manager string) (storage.Storage, error) {
	secret := &corev1.Secret{}
	where := client.ObjectKey{Namespace: anywherev1.SystemNamespace, Name: anywherev1.LocalCredentials}
	if err := c.Live.Get(ctx, where, secret); err != nil {
		return nil, fmt.Errorf("reading the credentials of the metal service: %w", err)
	}
	found := access.FromSecret(secret)
	project := string(secret.Data[projectKey])
	if found.URL == "" || found.Token == "" || project == "" {
		return nil, fmt.Errorf("Secret %q has no credentials of the metal service", where) //nolint:staticcheck // The name of a kind
	}
	api, err := packet.New(packet.Options{
		URL: found.URL, Token: found.Token, CA: []byte(found.CA), UserAgent: "drover/" + version.Get().Version, Timeout: packet.BackupTimeout,
	})
	if err != nil {
		return nil, err
	}
	return packet.Backups{Client: api, Project: project, Cluster: manager}, nil
}

// registryAccess returns how the registry of the settings is reached.
func registryAccess(s settings.Settings) (storage.RegistryAccess, error) {
	var out storage.RegistryAccess
	if s.Username != "" {
		out.Auth = &authn.Basic{Username: s.Username, Password: s.Password}
	}
	if s.CA == "" {
		return out, nil
	}
	roots, err := pki.Pool([]byte(s.CA))
	if err != nil {
		return out, fmt.Errorf("reading the CA of the registry: %w", err)
	}
	base, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		return out, errors.New("the default HTTP transport was replaced")
	}
	transport := base.Clone()
	transport.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots}
	out.Transport = transport
	return out, nil
}
