package git

import (
	"errors"
	"io/fs"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/clock"

	"github.com/drover-dev/drover/internal/test/gittest"
)

// overHTTPS returns a server, an empty repository on it and how to access that.
func overHTTPS(t *testing.T) (*gittest.HTTPS, *gittest.Repository, Remote) {
	t.Helper()
	server := gittest.NewHTTPS(t)
	repository := server.Create("fleet.git")
	return server, repository, Remote{
		URL: server.URL("fleet.git"), Branch: gittest.Branch,
		Credentials: Credentials{Username: gittest.Username, Password: gittest.Password, CA: server.CA},
	}
}

// overSSH is overHTTPS for SSH and a type of key.
func overSSH(t *testing.T, kind, passphrase string) (*gittest.SSH, *gittest.Repository, Remote) {
	t.Helper()
	private, public := gittest.NewKey(t, kind, passphrase)
	server := gittest.NewSSH(t, public)
	repository := server.Create("fleet.git")
	return server, repository, Remote{
		URL: server.URL("fleet.git"), Branch: gittest.Branch,
		Credentials: Credentials{PrivateKey: private, Passphrase: passphrase, KnownHosts: server.KnownHosts},
	}
}

func open(t *testing.T, remote Remote, o Options) *Repository {
	t.Helper()
	r, err := New(remote, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// set returns an edit that writes files whatever is there.
func set(files map[string]string) Edit {
	return func(fs.FS) (map[string][]byte, error) {
		changes := map[string][]byte{}
		for path, content := range files {
			changes[path] = []byte(content)
		}
		return changes, nil
	}
}

// appendLine returns an edit that is not idempotent: applied twice, it adds two lines.
func appendLine(path, line string) Edit {
	return func(files fs.FS) (map[string][]byte, error) {
		before, err := fs.ReadFile(files, path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		return map[string][]byte{path: append(before, line+"\n"...)}, nil
	}
}

func mustUpdate(t *testing.T, r *Repository, edit Edit) Result {
	t.Helper()
	result, err := r.Update(t.Context(), Message{Subject: "Change files"}, edit)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// contents reads all files.
func contents(t *testing.T, files fs.FS) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := fs.WalkDir(files, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(files, path)
		found[path] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// mustNotLeak fails if an error contains a credential.
func mustNotLeak(t *testing.T, err error, c Credentials) {
	t.Helper()
	for _, secret := range c.secrets() {
		if secret != "" && strings.Contains(err.Error(), secret) {
			t.Errorf("error contains a credential: %v", err)
		}
	}
}

// frozen is a clock whose time stands still and whose timers work.
type frozen struct {
	clock.RealClock

	at time.Time
}

func (f frozen) Now() time.Time { return f.at }

func fixedClock(at time.Time) clock.Clock { return frozen{at: at} }
