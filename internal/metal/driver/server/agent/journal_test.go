package agent

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// tree returns everything below a directory: files with their content, links with their target.
func tree(t *testing.T, root string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		name := strings.TrimPrefix(path, root) + " " + info.Mode().String()
		switch {
		case d.IsDir():
			out[name] = ""
		case d.Type()&fs.ModeSymlink != 0:
			out[name], err = os.Readlink(path)
		default:
			data, readErr := os.ReadFile(path)
			out[name], err = string(data), readErr
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func newJournal(t *testing.T) journal {
	t.Helper()
	j := journal{root: t.TempDir(), dir: filepath.Join(t.TempDir(), "state")}
	must(t, os.MkdirAll(filepath.Join(j.root, "etc"), 0o755))
	must(t, os.WriteFile(filepath.Join(j.root, "etc/hosts"), []byte("127.0.0.1 localhost\n"), 0o640))
	must(t, os.Symlink("/usr/bin/other", filepath.Join(j.root, "etc/kubelet")))
	return j
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// change does to a server what the agent does: it protects, then it changes.
func (j journal) change(t *testing.T, path, content string) {
	t.Helper()
	must(t, j.protect(path))
	at := filepath.Join(j.root, path)
	must(t, os.RemoveAll(at))
	must(t, os.WriteFile(at, []byte(content), 0o600))
}

func TestJournalRestoresEverything(t *testing.T) {
	j := newJournal(t)
	before := tree(t, j.root)
	for range 2 { // An agent that was killed does everything again.
		j.change(t, "/etc/hosts", "changed")
		j.change(t, "/etc/kubelet", "a file where a link was")
		j.change(t, "/opt/drover/bin/kube", "new")
		j.change(t, "/opt/drover/bin/runc", "new")
	}
	must(t, os.WriteFile(filepath.Join(j.root, "opt/drover/log"), nil, 0o600))
	for range 2 {
		must(t, j.restore())
		if diff := cmp.Diff(before, tree(t, j.root)); diff != "" {
			t.Fatal(diff)
		}
	}
}

func TestJournalSurvivesATornLine(t *testing.T) {
	j := newJournal(t)
	before := tree(t, j.root)
	j.change(t, "/etc/hosts", "changed")
	f, err := os.OpenFile(j.file(), os.O_APPEND|os.O_WRONLY, 0)
	must(t, err)
	_, err = f.WriteString(`{"path":"/etc/kub`)
	must(t, err)
	must(t, f.Close())
	j.change(t, "/etc/kubelet", "changed")
	j.change(t, "/etc/new", "changed")
	must(t, j.restore())
	if diff := cmp.Diff(before, tree(t, j.root)); diff != "" {
		t.Error(diff)
	}
}

func TestJournalKeepsTheFirstBackup(t *testing.T) {
	j := newJournal(t)
	j.change(t, "/etc/hosts", "one")
	j.change(t, "/etc/hosts", "two")
	must(t, j.restore())
	data, err := os.ReadFile(filepath.Join(j.root, "etc/hosts"))
	if err != nil || string(data) != "127.0.0.1 localhost\n" {
		t.Errorf("got %q, %v", data, err)
	}
}

func TestHostsFileHasTheNameOnce(t *testing.T) {
	hosts := "127.0.0.1 localhost\n192.0.2.1 other # drover"
	for range 2 {
		hosts = withName(hosts, "192.0.2.9", "node-1")
	}
	if want := "127.0.0.1 localhost\n192.0.2.9 node-1 # drover\n"; hosts != want {
		t.Errorf("got %q, want %q", hosts, want)
	}
}
