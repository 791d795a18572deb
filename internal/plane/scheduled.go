package plane

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"filippo.io/age"

	"github.com/drover-dev/drover/internal/base/atomicfile"
	"github.com/drover-dev/drover/internal/model/backup/schedule"
	"github.com/drover-dev/drover/internal/model/backup/storage"
)

// Backups are the settings of the scheduled backups of a plane.
type Backups struct {
	schedule.Schedule
	// Dir is where they are; the directory beside the home if empty.
	Dir string `json:"dir,omitempty"`
}

// BackupState is what became of the scheduled backups.
type BackupState struct {
	Backups
	schedule.Status
}

// DefaultBackups returns the settings of a plane that has none.
func DefaultBackups() Backups {
	return Backups{Schedule: schedule.Schedule{Every: schedule.DefaultEvery, Keep: schedule.DefaultKeep}}
}

// BackupOptions change the settings of scheduled backups; zero values keep the previous ones.
type BackupOptions struct {
	// Every is the interval; nil keeps the previous one, 0 turns backups off.
	Every *time.Duration
	Keep  int
	Dir   string
}

// change returns the settings with the changes; nil if there never were any.
func (o BackupOptions) change(was *Backups) *Backups {
	if o == (BackupOptions{}) {
		return was
	}
	b := DefaultBackups()
	if was != nil {
		b = *was
	}
	if o.Every != nil {
		b.Every = *o.Every
	}
	b.Keep, b.Dir = cmp.Or(o.Keep, b.Keep), cmp.Or(o.Dir, b.Dir)
	return &b
}

// args returns the flags of a supervisor.
func (o BackupOptions) args() []string {
	var args []string
	if o.Every != nil {
		args = append(args, "--backup-interval", o.Every.String())
	}
	if o.Keep != 0 {
		args = append(args, "--backup-keep", strconv.Itoa(o.Keep))
	}
	if o.Dir != "" {
		args = append(args, "--backup-dir", o.Dir)
	}
	return args
}

// backups returns the settings with their defaults.
func (c Config) backups(h Home) Backups {
	b := DefaultBackups()
	if c.Backups != nil {
		b = *c.Backups
	}
	b.Dir = cmp.Or(b.Dir, h.BackupDir())
	return b
}

// BackupDir is where scheduled backups are by default: beside the home, so that they survive it.
func (h Home) BackupDir() string { return h.Dir + "-backups" }

// RecoveryDir has what opens and verifies scheduled backups. It is neither in the home, with which
// it would be lost, nor with the backups, which are copied to other places.
func (h Home) RecoveryDir() string { return h.Dir + "-recovery" }

// RecoveryKey is the file with the age identity that opens scheduled backups.
func (h Home) RecoveryKey() string { return filepath.Join(h.RecoveryDir(), "identity.txt") }

// RecoveryCA is the file with the CA that signs backups, and those of earlier planes in this home.
func (h Home) RecoveryCA() string { return filepath.Join(h.RecoveryDir(), "ca.crt") }

func (h Home) backupStateFile() string { return h.path("run", "backups.json") }

// ReadBackups returns what became of the scheduled backups; nil if none were due yet.
func (h Home) ReadBackups() *BackupState {
	data, err := os.ReadFile(h.backupStateFile())
	s := &BackupState{}
	if err != nil || json.Unmarshal(data, s) != nil {
		return nil
	}
	return s
}

// recipient returns the recipient of the recovery key, which it creates unless the file exists.
func (h Home) recipient() (age.Recipient, error) {
	if err := os.MkdirAll(h.RecoveryDir(), 0o700); err != nil {
		return nil, fmt.Errorf("creating the directory of the recovery key: %w", err)
	}
	if err := h.keepCA(); err != nil {
		return nil, err
	}
	data, err := os.ReadFile(h.RecoveryKey())
	if errors.Is(err, fs.ErrNotExist) {
		return h.newRecoveryKey()
	}
	if err != nil {
		return nil, fmt.Errorf("reading the recovery key: %w", err)
	}
	identities, err := age.ParseIdentities(strings.NewReader(string(data)))
	if err != nil {
		return nil, fmt.Errorf("reading the recovery key %q: %w", h.RecoveryKey(), err)
	}
	for _, one := range identities {
		if i, ok := one.(*age.X25519Identity); ok {
			return i.Recipient(), nil
		}
	}
	return nil, fmt.Errorf("reading the recovery key %q: it contains no X25519 identity", h.RecoveryKey())
}

// keepCA copies the CA that signs backups to the recovery directory. Those of earlier planes in
// this home stay there: somebody who lost the home may have started a new one before the restore.
func (h Home) keepCA() error {
	ca, err := os.ReadFile(h.certFile("ca"))
	if err != nil {
		return fmt.Errorf("reading the CA that signs backups: %w", err)
	}
	kept, err := os.ReadFile(h.RecoveryCA())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("reading the CAs that signed backups: %w", err)
	}
	if bytes.Contains(kept, bytes.TrimSpace(ca)) {
		return nil
	}
	all := slices.Concat(bytes.TrimSpace(ca), []byte("\n"), kept)
	return atomicfile.Write(h.RecoveryCA(), all, 0o600)
}

func (h Home) newRecoveryKey() (age.Recipient, error) {
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		return nil, fmt.Errorf("generating the recovery key: %w", err)
	}
	text := fmt.Sprintf("# Opens the scheduled backups of the embedded plane in %s. Keep a copy in another place.\n%s\n", h.Dir, identity)
	return identity.Recipient(), atomicfile.Write(h.RecoveryKey(), []byte(text), 0o600)
}

// scheduledBackup returns the job that makes the backups of a running plane.
func (h Home) scheduledBackup(b Backups) schedule.Job {
	return schedule.Job{
		Schedule: b.Schedule, Storage: storage.Directory{Path: b.Dir, Suffix: ".backup"},
		Fill: func(ctx context.Context, _ time.Time, w io.Writer) error {
			to, err := h.recipient()
			if err != nil {
				return err
			}
			_, err = h.collect(ctx, func(m Manifest, c contents) error { return encode(w, m, c, []age.Recipient{to}) })
			return err
		},
	}
}

// keepBackedUp makes scheduled backups until ctx ends. A new plane, which has nothing to lose yet,
// gets its first one after the interval.
func (p *Plane) keepBackedUp(ctx context.Context) {
	b := p.config.backups(p.home)
	if b.Off() {
		_ = os.Remove(p.home.backupStateFile())
		return
	}
	job := p.home.scheduledBackup(b)
	next := p.firstBackup(ctx, job)
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Until(next)):
		}
		status, then, err := job.Run(ctx, time.Now())
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			p.log.Error("Failed to make a backup", "error", err)
		}
		next = then
		if err := writeJSON(p.home.backupStateFile(), BackupState{b, status}); err != nil {
			p.log.Error("Failed to write the state of backups", "error", err)
		}
	}
}

// firstBackup returns when the first backup of this run is due.
func (p *Plane) firstBackup(ctx context.Context, job schedule.Job) time.Time {
	now := time.Now()
	status, err := schedule.Observe(ctx, job.Storage)
	meta, metaErr := p.home.ReadMeta()
	if err != nil || metaErr != nil || status.Kept > 0 {
		return now // It says what is wrong, or that none is due yet.
	}
	return meta.Created.Add(job.Every)
}
