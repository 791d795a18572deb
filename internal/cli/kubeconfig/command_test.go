package kubeconfig

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/drover-dev/drover/internal/cli/ui"
)

func execute(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	cmd := NewCommand(&ui.IO{Out: &out, Err: &out})
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(args)
	err := cmd.ExecuteContext(t.Context())
	return out.String(), err
}

func TestArgumentsAreChecked(t *testing.T) {
	for want, args := range map[string][]string{
		"accepts 1 arg(s), received 0":         {},
		"accepts 1 arg(s), received 2":         {"one", "two"},
		"unknown flag: --follow":               {"one", "--follow"},
		`invalid argument "soon" for "--wait"`: {"one", "--wait", "soon"},
		"no-such-file":                         {"one", "--kubeconfig", "no-such-file"},
	} {
		if out, err := execute(t, args...); err == nil || !strings.Contains(err.Error(), want) || out != "" {
			t.Errorf("drover kubeconfig %s: %q, error %v; want %q", strings.Join(args, " "), out, err, want)
		}
	}
}

func TestUnreachablePlaneIsAnError(t *testing.T) {
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(stored, "10.0.0.1:6443", "127.0.0.1:1")), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := execute(t, "one", "--kubeconfig", file); err == nil || !strings.Contains(err.Error(), "connection refused") || out != "" {
		t.Errorf("%q, error %v", out, err)
	}
	o := &options{}
	cmd := &cobra.Command{}
	o.plane.Add(cmd.Flags())
	cmd.SetContext(t.Context())
	if err := cmd.Flags().Set("kubeconfig", file); err != nil {
		t.Fatal(err)
	}
	if names, directive := o.complete(cmd, nil, ""); names != nil || directive != cobra.ShellCompDirectiveError {
		t.Errorf("completions %v, directive %d", names, directive)
	}
	if _, directive := o.complete(cmd, []string{"one"}, ""); directive != cobra.ShellCompDirectiveNoFileComp {
		t.Errorf("directive %d for a second name", directive)
	}
}

func TestContextsAreRenamed(t *testing.T) {
	var out bytes.Buffer
	o := options{output: filepath.Join(t.TempDir(), "config"), merge: true}
	if err := o.deliver(t.Context(), &ui.IO{Out: &out, Err: &out}, parse(t)); err != nil {
		t.Fatal(err)
	}
	if want := "kubectl --kubeconfig " + o.output + " --context one-admin@one get nodes"; !strings.Contains(out.String(), want) {
		t.Errorf("it suggests %q, want %q", out.String(), want)
	}
}
