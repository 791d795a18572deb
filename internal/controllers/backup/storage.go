package backup

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/base/version"
	"github.com/drover-dev/drover/internal/metal/access"
	packet "github.com/drover-dev/drover/internal/metal/client"
	"github.com/drover-dev/drover/internal/model/backup/storage"
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
