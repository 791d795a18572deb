package bootstrap

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/config"
	"github.com/drover-dev/drover/internal/model/backup/schedule"
	"github.com/drover-dev/drover/internal/model/backup/settings"
)

// ReadBackups returns the settings of the scheduled backups of a management cluster, and whether it
// has any.
func ReadBackups(ctx context.Context, on *rest.Config) (s settings.Settings, found bool, err error) {
	c, err := newClient(on)
	if err != nil {
		return s, false, err
	}
	secret := &corev1.Secret{}
	if err := c.Get(ctx, backupKey(), secret); err != nil {
		if client.IgnoreNotFound(err) == nil {
			return settings.Default(), false, nil
		}
		return s, false, fmt.Errorf("reading the settings of backups: %w", err)
	}
	s, err = settings.Parse(secret.Data)
	if err != nil {
		return s, true, fmt.Errorf("Secret %q: %w", backupKey(), err)
	}
	return s, true, nil
}

// ScheduleBackups writes the settings of the scheduled backups of a management cluster.
func ScheduleBackups(ctx context.Context, on *rest.Config, s settings.Settings) error {
	if err := s.Check(); err != nil {
		return err
	}
	c, err := newClient(on)
	if err != nil {
		return err
	}
	return apply(ctx, c, newSecret(config.Namespace, config.BackupSecret, s.Data()))
}

// BackupStatus returns what became of the scheduled backups of a management cluster.
func BackupStatus(ctx context.Context, on *rest.Config) (schedule.Status, error) {
	c, err := newClient(on)
	if err != nil {
		return schedule.Status{}, err
	}
	found := &corev1.ConfigMap{}
	if err := c.Get(ctx, client.ObjectKey{Namespace: config.Namespace, Name: config.BackupStatus}, found); err != nil {
		return schedule.Status{}, client.IgnoreNotFound(err)
	}
	return settings.ParseStatus(found.Data), nil
}

func backupKey() client.ObjectKey {
	return client.ObjectKey{Namespace: config.Namespace, Name: config.BackupSecret}
}
