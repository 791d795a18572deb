package support

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/drover-dev/drover/internal/cli/ui"
	"github.com/drover-dev/drover/internal/test/kubetest"
)

func TestMain(m *testing.M) { os.Exit(kubetest.Main(m)) }

func TestArchiveIsReadableOnlyByItsOwner(t *testing.T) {
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
			t.Errorf("%s is not reported:\n%s", want, told)
		}
	}
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 || info.Size() < 1000 {
		t.Errorf("%v: the archive is %v", err, info)
	}
}

func TestArchiveIsWrittenWithoutAPlane(t *testing.T) {
	t.Setenv("KUBECONFIG", "")
	t.Setenv("DROVER_HOME", t.TempDir())
	file := filepath.Join(t.TempDir(), "bundle.tar.gz")
	_, told, err := run(t, "--metal-home", t.TempDir(), "--file", file)
	if err != nil || !strings.Contains(told, "Not collected: no management plane") {
		t.Errorf("%v: it told\n%s", err, told)
	}
	if _, err := os.Stat(file); err != nil {
		t.Error(err)
	}
}

func TestUnwritableFileIsAnError(t *testing.T) {
	_, _, err := run(t, "--home", t.TempDir(), "--metal-home", t.TempDir(), "--file", filepath.Join(t.TempDir(), "nowhere", "bundle.tar.gz"))
	if err == nil || !strings.Contains(err.Error(), "nowhere") {
		t.Errorf("got %v", err)
	}
}

func TestGenerateSupportBundle(t *testing.T) {
	t.Setenv("KUBECONFIG", "")
	t.Setenv("DROVER_HOME", t.TempDir())
	t.Chdir(t.TempDir())
	const spec = "apiVersion: anywhere.eks.amazonaws.com/v1alpha1\nkind: Cluster\nmetadata: {name: billy}\nspec: {}\n"
	for file, text := range map[string]string{"billy.yaml": spec, "billy/billy-eks-a-cluster.yaml": "left"} {
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	_, told, err := execute(t, NewGenerateCommand, "-f", "billy.yaml", "-w", "w.kubeconfig", "--since", "1h", "--metal-home", t.TempDir(), "--file", "bundle.tar.gz")
	for _, want := range []string{"--w-config has no effect", "--since has no effect", "command/billy-eks-a-cluster.yaml"} {
		if err != nil || !strings.Contains(told, want) {
			t.Errorf("%v: %q is not reported:\n%s", err, want, told)
		}
	}
	if _, _, err := execute(t, NewGenerateCommand, "-f", "none.yaml"); err == nil || !strings.Contains(err.Error(), "none.yaml") {
		t.Errorf("got %v", err)
	}
}

func run(t *testing.T, args ...string) (out, told string, err error) {
	t.Helper()
	return execute(t, NewCommand, args...)
}

func execute(t *testing.T, command func(*ui.IO) *cobra.Command, args ...string) (out, told string, err error) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := command(&ui.IO{Out: &stdout, Err: &stderr})
	cmd.SetArgs(args)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	err = cmd.ExecuteContext(t.Context())
	return stdout.String(), stderr.String(), err
}
