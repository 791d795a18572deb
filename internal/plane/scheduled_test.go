package plane

import (
	"os"
	"strings"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/google/go-cmp/cmp"

	"github.com/drover-dev/drover/internal/model/backup/schedule"
)

func TestBackupSettingsAreRemembered(t *testing.T) {
	six, off := 6*time.Hour, time.Duration(0)
	was := &Backups{Schedule: schedule.Schedule{Every: time.Hour, Keep: 9}, Dir: "/backups"}
	for name, tt := range map[string]struct {
		was     *Backups
		options BackupOptions
		want    *Backups
	}{
		"nothing was ever set": {nil, BackupOptions{}, nil},
		"nothing is changed":   {was, BackupOptions{}, was},
		"an interval":          {was, BackupOptions{Every: &six}, &Backups{Schedule: schedule.Schedule{Every: six, Keep: 9}, Dir: "/backups"}},
		"off":                  {was, BackupOptions{Every: &off}, &Backups{Schedule: schedule.Schedule{Keep: 9}, Dir: "/backups"}},
		"the first setting":    {nil, BackupOptions{Dir: "/nas"}, &Backups{Schedule: DefaultBackups().Schedule, Dir: "/nas"}},
	} {
		if diff := cmp.Diff(tt.want, tt.options.change(tt.was)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	home := Home{Dir: "/srv/drover"}
	if got := (Config{}).backups(home); got.Off() || got.Dir != "/srv/drover-backups" {
		t.Errorf("by default: %+v", got)
	}
	if strings.HasPrefix(home.RecoveryKey(), home.Dir+"/") || strings.HasPrefix(home.RecoveryKey(), home.BackupDir()) {
		t.Errorf("the recovery key is lost with the home or copied with the backups: %s", home.RecoveryKey())
	}
}

func TestRecoveryKeyIsCreatedOnce(t *testing.T) {
	p := newPKI(t)
	write(t, p.home.path("pki", "ca.crt"), "the CA")
	t.Cleanup(func() { _ = os.RemoveAll(p.home.RecoveryDir()) })
	first, err := p.home.recipient()
	if err != nil {
		t.Fatal(err)
	}
	again, err := p.home.recipient()
	if err != nil || first.(*age.X25519Recipient).String() != again.(*age.X25519Recipient).String() {
		t.Errorf("got %v and %v: %v", first, again, err)
	}
	for _, file := range []string{p.home.RecoveryKey(), p.home.RecoveryCA()} {
		if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", file, info, err)
		}
	}
	write(t, p.home.path("pki", "ca.crt"), "the CA of another plane\n")
	for range 2 {
		if _, err := p.home.recipient(); err != nil {
			t.Fatal(err)
		}
	}
	if ca, err := os.ReadFile(p.home.RecoveryCA()); err != nil || string(ca) != "the CA of another plane\nthe CA\n" {
		t.Errorf("%v: backups are verified with %q", err, ca)
	}
	if err := os.WriteFile(p.home.RecoveryKey(), []byte("damaged"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := p.home.recipient(); err == nil {
		t.Error("a damaged key was replaced: its backups could not be opened anymore")
	}
}
