package cli

import (
	"bytes"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/drover-dev/drover/internal/cli/ui"
)

// run runs a command and returns its exit code and what it printed.
func run(t *testing.T, args ...string) (code int, out, err string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	root := NewCommand(&ui.IO{In: &bytes.Buffer{}, Out: &stdout, Err: &stderr})
	root.SetArgs(args)
	code = ui.Report(&stderr, root.ExecuteContext(t.Context()))
	return code, stdout.String(), stderr.String()
}

func TestUsageErrors(t *testing.T) {
	for name, tt := range map[string]struct {
		args []string
		want string
	}{
		"an unknown flag":         {[]string{"version", "--bogus"}, "unknown flag: --bogus"},
		"an argument too many":    {[]string{"version", "more"}, "see `drover version --help`"},
		"an argument too few":     {[]string{"backup"}, "see `drover backup --help`"},
		"an unknown output":       {[]string{"version", "-o", "xml"}, "use json or yaml"},
		"a value of another type": {[]string{"up", "--api-port", "many"}, "--api-port"},
	} {
		t.Run(name, func(t *testing.T) {
			code, _, err := run(t, tt.args...)
			if code != ui.ExitUsage || !strings.Contains(err, tt.want) {
				t.Errorf("code %d:\n%s\nwant %q", code, err, tt.want)
			}
		})
	}
}

func TestHelpWithoutACommand(t *testing.T) {
	code, out, _ := run(t)
	if code != ui.ExitOK || !strings.Contains(out, "Drover runs fleets of Kubernetes clusters") || !strings.Contains(out, "Embedded plane:") {
		t.Errorf("code %d:\n%s", code, out)
	}
}

func TestExitCodesAreDocumented(t *testing.T) {
	_, out, _ := run(t, "help", "exit-codes")
	for _, want := range []string{"0  success", "1  failure", "2  usage error", "3  the embedded plane is not running"} {
		if !strings.Contains(out, want) {
			t.Errorf("there is no %q in:\n%s", want, out)
		}
	}
}

func TestVersion(t *testing.T) {
	code, out, _ := run(t, "version")
	if code != ui.ExitOK || !strings.HasPrefix(out, "drover v") || !strings.Contains(out, "Kubernetes v1.") {
		t.Errorf("code %d:\n%s", code, out)
	}
	if _, out, _ := run(t, "version", "-o", "json"); !strings.Contains(out, `"kubernetes": "v1.`) {
		t.Errorf("as JSON:\n%s", out)
	}
}

// TestEveryCommandHasADescription checks that the help of all commands has one form.
func TestEveryCommandHasADescription(t *testing.T) {
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		switch {
		case cmd.Short == "":
			t.Errorf("%s has no description", cmd.CommandPath())
		case strings.HasSuffix(cmd.Short, "."), strings.ToUpper(cmd.Short[:1]) != cmd.Short[:1]:
			t.Errorf("%s: %q: want a verb phrase with a capital and without a period", cmd.CommandPath(), cmd.Short)
		}
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
	}
	root := NewCommand(&ui.IO{})
	for _, cmd := range root.Commands() {
		if cmd.GroupID == "" && !cmd.Hidden && cmd.Name() != "exit-codes" && cmd.Name() != "help" && cmd.Name() != "completion" {
			t.Errorf("%s is in no group", cmd.Name())
		}
		walk(cmd)
	}
}
