package support

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drover-dev/drover/internal/cli/ui"
	"github.com/drover-dev/drover/internal/test/kubetest"
)

func TestMain(m *testing.M) { os.Exit(kubetest.Main(m)) }

func TestTheArchiveIsWrittenForItsOwnerAlone(t *testing.T) {
	server := kubetest.SharedWithoutWebhooks(t)
	home, file := t.TempDir(), filepath.Join(t.TempDir(), "bundle.tar.gz")
	if err := os.MkdirAll(filepath.Join(home, "logs"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, "logs", "manager.log"), []byte("a line\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	out, told, err := run(t, "--kubeconfig", server.Kubeconfig(t), "--home", home, "--metal-home", t.TempDir(), "--file", file)
	if err != nil || strings.TrimSpace(out) != file {
		t.Fatalf("%v: it printed %q", err, out)
	}
	for _, want := range []string{"logs/plane/manager.log", "clusters", "secrets"} {
		if !strings.Contains(told, want) {
			t.Errorf("it did not tell of %s:\n%s", want, told)
		}
	}
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 || info.Size() < 1000 {
		t.Errorf("%v: the archive is %v", err, info)
	}
}

func TestWithoutAPlaneThereIsStillAnArchive(t *testing.T) {
	t.Setenv("KUBECONFIG", "")
	t.Setenv("DROVER_HOME", t.TempDir())
	file := filepath.Join(t.TempDir(), "bundle.tar.gz")
	_, told, err := run(t, "--metal-home", t.TempDir(), "--file", file)
	if err != nil || !strings.Contains(told, "not collected: there is no management plane") {
		t.Errorf("%v: it told\n%s", err, told)
	}
	if _, err := os.Stat(file); err != nil {
		t.Error(err)
	}
}

func TestAPlaceThatCannotBeWrittenToIsRefused(t *testing.T) {
	_, _, err := run(t, "--home", t.TempDir(), "--metal-home", t.TempDir(), "--file", filepath.Join(t.TempDir(), "nowhere", "bundle.tar.gz"))
	if err == nil || !strings.Contains(err.Error(), "nowhere") {
		t.Errorf("got %v", err)
	}
}

func run(t *testing.T, args ...string) (out, told string, err error) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := NewCommand(&ui.IO{Out: &stdout, Err: &stderr})
	cmd.SetArgs(args)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	err = cmd.ExecuteContext(t.Context())
	return stdout.String(), stderr.String(), err
}
