package registry

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/drover-dev/drover/internal/cli/ui"
	"github.com/drover-dev/drover/internal/plane"
	"github.com/drover-dev/drover/internal/test/artifacttest"
)

// drover runs a command below "drover registry".
func drover(t *testing.T, args ...string) (code int, out, errs string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	root := &cobra.Command{Use: "drover", SilenceErrors: true, SilenceUsage: true}
	root.AddCommand(NewCommand(&ui.IO{In: strings.NewReader(""), Out: &stdout, Err: &stderr}))
	root.SetArgs(append([]string{"registry"}, args...))
	root.SetOut(&stdout)
	root.SetErr(&stderr)
	code = ui.Report(&stderr, root.ExecuteContext(t.Context()))
	return code, stdout.String(), stderr.String()
}

// write writes a file with the content.
func write(t *testing.T, file string, content []byte) string {
	t.Helper()
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// stoppedHome returns the home of a plane that isn't running.
func stoppedHome(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "run"), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "home.json"), []byte(`{"format":1}`))
	write(t, filepath.Join(dir, "run", "state.json"), []byte(`{"components":[{"name":"registry","state":"ready"}]}`))
	write(t, filepath.Join(dir, "config.json"), []byte(`{"apiAddress":"127.0.0.1","registryPort":5007,"registryAddress":"198.18.0.1"}`))
	return dir
}

func TestCommandsOnStoppedPlane(t *testing.T) {
	home := stoppedHome(t)
	chart := write(t, filepath.Join(t.TempDir(), "hello.tgz"), artifacttest.Chart(t, "hello", "1.0.0", nil))
	for _, args := range [][]string{{"list"}, {"gc"}, {"push", chart}} {
		if code, out, errs := drover(t, append(args, "--home", home)...); code == 0 || out != "" || !strings.Contains(errs, plane.ErrNotRunning.Error()) {
			t.Errorf("%s exited with %d:\n%s%s", args[0], code, out, errs)
		}
	}
}

func TestStatusOfStoppedPlane(t *testing.T) {
	home := stoppedHome(t)
	code, out, errs := drover(t, "status", "--home", home)
	if code != ui.ExitNotRunning || errs != "" {
		t.Errorf("status exited with %d: %s", code, errs)
	}
	for _, want := range []string{"Registry   Stopped\n", "URL        https://127.0.0.1:5007\n", "Also at    198.18.0.1:5007\n", "User       drover\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing in\n%s", want, out)
		}
	}
	_, out, _ = drover(t, "login-info", "--home", home, "-o", "json")
	var got map[string]string
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"url": "https://127.0.0.1:5007", "address": "198.18.0.1:5007", "state": plane.Stopped, "user": "drover", "charts": "oci://127.0.0.1:5007/charts",
		"caFile": got["caFile"], "passwordFile": filepath.Join(home, "registry-password"), "dir": filepath.Join(home, "registry"),
	}
	if diff := cmp.Diff(want, got); diff != "" || !strings.HasPrefix(got["caFile"], home) {
		t.Errorf("CA %q (-want +got)\n%s", got["caFile"], diff)
	}
}

func TestUsageErrors(t *testing.T) {
	home := stoppedHome(t)
	for name, tc := range map[string]struct {
		args []string
		code int
		want string
	}{
		"negative age":        {[]string{"gc", "--older-than", "-1h"}, 2, "--older-than must not be negative"},
		"invalid age":         {[]string{"gc", "--older-than", "soon"}, 1, "soon"},
		"nothing to push":     {[]string{"push"}, 1, "accepts between 1 and 2 arg"},
		"missing chart":       {[]string{"push", "missing.tgz"}, 1, "reading the chart: "},
		"directory":           {[]string{"push", t.TempDir()}, 1, "Try: helm package"},
		"unexpected argument": {[]string{"list", "charts"}, 1, "charts"},
		"unknown format":      {[]string{"status", "-o", "xml"}, 1, "xml"},
	} {
		t.Run(name, func(t *testing.T) {
			if code, _, errs := drover(t, append(tc.args, "--home", home)...); code != tc.code || !strings.Contains(errs, tc.want) {
				t.Errorf("exited with %d, want %q in\n%s", code, tc.want, errs)
			}
		})
	}
}

func TestReadChart(t *testing.T) {
	file := write(t, filepath.Join(t.TempDir(), "hello.tgz"), artifacttest.Chart(t, "hello", "1.0.0", nil))
	chart, err := readChart(file)
	if err != nil || chart.Name != "hello" || chart.Version != "1.0.0" {
		t.Errorf("got %+v, %v", chart, err)
	}
}

func TestHost(t *testing.T) {
	for url, want := range map[string]string{"https://127.0.0.1:5000": "127.0.0.1:5000", "https://registry": "registry", "://broken": "://broken"} {
		if got := host(plane.Registry{URL: url}); got != want {
			t.Errorf("host(%q) = %q, want %q", url, got, want)
		}
	}
}

func TestPushCompletesOneArchive(t *testing.T) {
	cmd := newPush(&ui.IO{}, &homeFlag{})
	if got, directive := cmd.ValidArgsFunction(cmd, nil, ""); directive != cobra.ShellCompDirectiveFilterFileExt || !slices.Equal(got, []string{"tgz"}) {
		t.Errorf("first argument: %v, %v", got, directive)
	}
	if got, directive := cmd.ValidArgsFunction(cmd, []string{"a.tgz"}, ""); directive != cobra.ShellCompDirectiveNoFileComp || len(got) > 0 {
		t.Errorf("second argument: %v, %v", got, directive)
	}
}

func TestRegistryWithoutSubcommandPrintsHelp(t *testing.T) {
	code, out, _ := drover(t)
	if code != 0 || !strings.Contains(out, "drover registry push hello-1.0.0.tgz") {
		t.Errorf("exited with %d:\n%s", code, out)
	}
}
