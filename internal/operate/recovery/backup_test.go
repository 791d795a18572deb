package recovery

import (
	"io"
	"strings"
	"testing"
	"time"

	"filippo.io/age"

	"github.com/drover-dev/drover/internal/base/pki"
	"github.com/drover-dev/drover/internal/model/backup/archive"
	"github.com/drover-dev/drover/internal/model/backup/storage"
)

// none is the content of an empty backup.
type none struct{}

func (none) WriteTo(io.Writer) (int64, error) { return 0, nil }

// keeper signs the backups of a management cluster and opens them.
type keeper struct {
	*pki.Authority
	identity *age.X25519Identity
}

func newKeeper(t *testing.T) keeper {
	t.Helper()
	authority, err := pki.NewAuthority("shepherd", time.Now(), time.Hour)
	must(t, err)
	identity, err := age.GenerateX25519Identity()
	must(t, err)
	return keeper{authority, identity}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// backUp stores a backup of a cluster under a name.
func (k keeper) backUp(t *testing.T, to storage.Storage, cluster, name string, made time.Time) {
	t.Helper()
	key, err := pki.ParseKey(k.Key)
	must(t, err)
	_, err = to.Put(t.Context(), name, func(w io.Writer) error {
		m := archive.Manifest{Cluster: cluster, Created: made, Drover: "v0.1.0"}
		return archive.Objects().Write(w, m, none{}, archive.Seal{Key: key, Recipients: []age.Recipient{k.identity.Recipient()}})
	})
	must(t, err)
}

func TestOpenRejectsBackupsOfOthers(t *testing.T) {
	made := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	own, other := newKeeper(t), newKeeper(t)
	for name, tt := range map[string]struct {
		by      keeper
		cluster string
		name    string
		want    string
	}{
		"its own":                                   {own, "shepherd", storage.Name(made), ""},
		"of another cluster with the same CA":       {own, "other", storage.Name(made), `of management cluster "other"`},
		"signed by another cluster":                 {keeper{other.Authority, own.identity}, "shepherd", storage.Name(made), "not from this cluster"},
		"for another key":                           {keeper{own.Authority, other.identity}, "shepherd", storage.Name(made), "wrong passphrase or identity"},
		"an old one that takes a newer one's place": {own, "shepherd", storage.Name(made.Add(time.Hour)), "made at 20260501T120000Z and renamed"},
	} {
		kept := storage.Directory{Path: t.TempDir()}
		tt.by.backUp(t, kept, tt.cluster, tt.name, made)
		_, err := Open(t.Context(), Source{Storage: kept, Cluster: "shepherd", Identities: []age.Identity{own.identity}, Signers: own.Certs})
		switch {
		case tt.want == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "nothing was changed")):
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
}
