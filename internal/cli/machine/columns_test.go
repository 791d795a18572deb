package machine

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/drover-dev/drover/internal/cli/ui"
	"github.com/drover-dev/drover/internal/metal/api"
)

func TestStateShowsProgressOfProvisioning(t *testing.T) {
	for want, d := range map[string]api.Device{
		"provisioning 0%":  {State: "provisioning"},
		"reinstalling 40%": {State: "reinstalling", ProvisioningPercentage: 40},
		"active":           {State: "active", ProvisioningPercentage: 100},
		"failed":           {State: "failed", ProvisioningPercentage: 30},
		"":                 {},
	} {
		if got := state(d); got != want {
			t.Errorf("state %q, want %q", got, want)
		}
	}
}

func TestAddressIsTheManagementAddress(t *testing.T) {
	six := management("2001:db8::1", true)
	six.AddressFamily = 6
	elastic := management("198.18.0.9", true)
	elastic.Management = false
	d := device("a", six, elastic, management("198.18.0.2", true), management("198.18.0.3", true), management("10.0.0.2", false))
	if got := address(d, true); got != "198.18.0.2" {
		t.Errorf("public address %q", got)
	}
	if got := address(d, false); got != "10.0.0.2" {
		t.Errorf("private address %q", got)
	}
	if got := address(device("b", six, elastic), true); got != "-" {
		t.Errorf("address %q of a machine without one", got)
	}
}

func TestEmptyTableHasAHeading(t *testing.T) {
	var out bytes.Buffer
	if err := table(&out, nil, time.Now()); err != nil || strings.Join(strings.Fields(out.String()), " ") != "NAME STATE CLUSTER PUBLIC PRIVATE PLAN METRO ID AGE" {
		t.Errorf("table %q, error %v", out.String(), err)
	}
}

func TestCommandsWithoutAService(t *testing.T) {
	home := filepath.Join(t.TempDir(), "none")
	for _, args := range [][]string{{"list"}, {"logs", "a"}, {"console", "a"}, {"ssh", "a"}} {
		var out, told bytes.Buffer
		cmd := NewCommand(&ui.IO{Out: &out, Err: &told})
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		cmd.SetArgs(append([]string{"--metal-home", home}, args...))
		err := cmd.ExecuteContext(t.Context())
		if err == nil || !strings.Contains(err.Error(), home) || !strings.Contains(err.Error(), "drover up") {
			t.Errorf("drover machine %s: error %v does not say what to do", strings.Join(args, " "), err)
		}
		if out.Len() > 0 {
			t.Errorf("drover machine %s prints %q", strings.Join(args, " "), out.String())
		}
	}
}

func TestCompletionsWithoutAServiceAreErrors(t *testing.T) {
	f := &homeFlag{dir: t.TempDir()}
	cmd := newLogs(&ui.IO{}, f)
	cmd.SetContext(t.Context())
	if names, directive := f.complete(cmd, nil, ""); names != nil || directive&1 == 0 {
		t.Errorf("completions %v, directive %d", names, directive)
	}
	if names, directive := f.complete(cmd, []string{"a"}, ""); names != nil || directive&1 != 0 {
		t.Errorf("completions %v of a second name, directive %d", names, directive)
	}
}

func TestSSHIsLookedForInThePath(t *testing.T) {
	t.Setenv("PATH", t.TempDir()+":"+t.TempDir())
	if err := execProcess([]string{"ssh", "root@192.0.2.1"}); err == nil || !strings.Contains(err.Error(), "drover machine console") {
		t.Errorf("error %v without an SSH client", err)
	}
}
