package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"filippo.io/age"
	"k8s.io/client-go/rest"

	"github.com/drover-dev/drover/internal/model/backup/settings"
	"github.com/drover-dev/drover/internal/operate/bootstrap"
	"github.com/drover-dev/drover/internal/operate/lifecycle/phase"
)

// scheduleBackups turns scheduled backups of a management cluster on, unless it has settings
// already. The key that opens them is only in a file here, so that neither the cluster nor the
// place of the backups can read them.
func (m *Management) scheduleBackups(ctx context.Context, p *phase.Progress, on *rest.Config) error {
	_, found, err := bootstrap.ReadBackups(ctx, on)
	if err != nil || found {
		return err
	}
	recipient, err := m.files().recipient()
	if err != nil {
		return err
	}
	wanted := settings.Default()
	wanted.Recipients = []string{recipient}
	if m.Config.Packet == nil {
		wanted.Location = settings.Metal // The service that has the machines outlives them.
	} else {
		p.Note("no backups are made before they have a location: see `drover backup schedule --help`")
	}
	return bootstrap.ScheduleBackups(ctx, on, wanted)
}

// recipient returns the recipient of the recovery key, which it creates unless the file exists.
func (f Files) recipient() (string, error) {
	identities, err := f.identities()
	if err == nil {
		return identities[0].Recipient().String(), nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		return "", fmt.Errorf("generating the recovery key: %w", err)
	}
	text := fmt.Sprintf("# Opens the backups of management cluster %s. Keep a copy in another place.\n# created: %s\n# public key: %s\n%s\n",
		f.Cluster, time.Now().UTC().Format(time.RFC3339), identity.Recipient(), identity)
	return identity.Recipient().String(), f.write(f.RecoveryKey(), []byte(text))
}

// identities reads the recovery key.
func (f Files) identities() ([]*age.X25519Identity, error) {
	data, err := os.ReadFile(f.RecoveryKey())
	if err != nil {
		return nil, err
	}
	all, err := age.ParseIdentities(strings.NewReader(string(data)))
	if err != nil {
		return nil, fmt.Errorf("reading the recovery key %q: %w", f.RecoveryKey(), err)
	}
	out := make([]*age.X25519Identity, 0, len(all))
	for _, one := range all {
		if i, ok := one.(*age.X25519Identity); ok {
			out = append(out, i)
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("reading the recovery key %q: it contains no X25519 identity", f.RecoveryKey())
	}
	return out, nil
}
