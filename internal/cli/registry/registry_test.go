package registry

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/drover-dev/drover/internal/cli/ui"
	"github.com/drover-dev/drover/internal/plane"
	"github.com/drover-dev/drover/internal/registry"
)

func TestCollectedText(t *testing.T) {
	for _, tc := range []struct {
		name string
		done registry.Collected
		want string
	}{
		{"nothing", registry.Collected{}, "Deleted 0 unreferenced blobs (0.0 MiB) and 0 abandoned uploads.\n"},
		{
			"blobs and uploads",
			registry.Collected{Removed: 3, Bytes: 3 << 19, Uploads: 2},
			"Deleted 3 unreferenced blobs (1.5 MiB) and 2 abandoned uploads.\n",
		},
		{
			"damaged content",
			registry.Collected{Damaged: []registry.Damaged{{Digest: "sha256:1", Repositories: []string{"a", "b"}}, {Digest: "sha256:2"}}},
			"Deleted damaged content sha256:1: push again to a, b\nDeleted damaged content sha256:2: not referenced\n" +
				"Deleted 0 unreferenced blobs (0.0 MiB) and 0 abandoned uploads.\n",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var out bytes.Buffer
			if err := collectedText(&out, tc.done); err != nil || out.String() != tc.want {
				t.Errorf("got %q, %v, want %q", out.String(), err, tc.want)
			}
		})
	}
}

func TestListTablePrintsOneLinePerTag(t *testing.T) {
	var out bytes.Buffer
	if err := listTable(&out, []registry.Repository{{Name: "charts/cni", Tags: []string{"0.1.0", "0.2.0"}}, {Name: "empty"}}); err != nil {
		t.Fatal(err)
	}
	var got []string
	for line := range strings.Lines(out.String()) {
		got = append(got, strings.Join(strings.Fields(line), " "))
	}
	if want := "REPOSITORY TAG|charts/cni 0.1.0|charts/cni 0.2.0|empty -"; strings.Join(got, "|") != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestReadChartRejectsOtherFiles(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "values.yaml")
	if err := os.WriteFile(text, []byte("a: b\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	large := filepath.Join(dir, "large.tgz")
	if err := os.WriteFile(large, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(large, registry.MaxChart+1); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{
		filepath.Join(dir, "missing.tgz"): "no such file", dir: "Try: helm package", text: "not a chart archive", large: "the limit for charts is 64 MiB",
	} {
		if _, err := readChart(file); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", file, err, want)
		}
	}
}

func TestStatusNeverPrintsThePassword(t *testing.T) {
	r := newReport(plane.Registry{URL: "https://127.0.0.1:5000", CAFile: "/ca.crt", PasswordFile: "/password"})
	if r.Charts != "oci://127.0.0.1:5000/charts" || r.User != registry.User {
		t.Errorf("got %+v", r)
	}
	var out bytes.Buffer
	if err := r.table(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"URL        https://127.0.0.1:5000\n", "Password   in /password\n", "repoURL: oci://127.0.0.1:5000/charts",
		"helm registry login 127.0.0.1:5000 --ca-file /ca.crt -u drover --password-stdin < /password",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "Also at") {
		t.Error("got an address, want none")
	}
}

func TestCommandsWithoutPlane(t *testing.T) {
	home := filepath.Join(t.TempDir(), "home")
	for name, want := range map[string]int{"list": 1, "gc": 1, "status": ui.ExitNotRunning} {
		var out, errs bytes.Buffer
		root := &cobra.Command{Use: "drover", SilenceErrors: true, SilenceUsage: true}
		root.AddCommand(NewCommand(&ui.IO{In: strings.NewReader(""), Out: &out, Err: &errs}))
		root.SetArgs([]string{"registry", name, "--home", home})
		if code := ui.Report(&errs, root.ExecuteContext(t.Context())); code != want || !strings.Contains(errs.String(), "no plane in this home") {
			t.Errorf("%s exited with %d, want %d:\n%s", name, code, want, errs.String())
		}
	}
	if _, err := os.Stat(home); err == nil {
		t.Error("a command created the home")
	}
}
