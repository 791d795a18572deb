package plane

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/drover-dev/drover/internal/cli/ui"
	"github.com/drover-dev/drover/internal/plane"
)

func TestCommandsRejectInvalidArguments(t *testing.T) {
	for name, tt := range map[string]struct {
		args []string
		code int
		want string
	}{
		"status without a plane":         {[]string{"status"}, ui.ExitNotRunning, "no plane in this home: run `drover up` to create one"},
		"backup without a plane":         {[]string{"backup", "file"}, ui.ExitFailed, "the embedded plane is not running: run `drover up` first"},
		"rotation without a plane":       {[]string{"encryption", "rotate"}, ui.ExitFailed, "run `drover up` first"},
		"restore of anyone's backup":     {[]string{"restore", "file", "--identity", "key"}, ui.ExitUsage, "--identity requires --signed-by"},
		"rotation with a cluster's flag": {[]string{"encryption", "rotate", "--dry-run"}, ui.ExitUsage, "--dry-run is about the key of a cluster: specify its NAME, or its spec with -f"},
		"rotation of two clusters":       {[]string{"encryption", "rotate", "one", "-f", "two.yaml"}, ui.ExitUsage, "specify either the NAME of the cluster or its spec with -f, not both"},
		"restore without a passphrase":   {[]string{"restore", "file"}, ui.ExitUsage, "use --passphrase-file or $DROVER_PASSPHRASE"},
		"up with an unknown driver":      {[]string{"up", "--metal", "bogus"}, ui.ExitUsage, `--metal "bogus" is not a driver: use one of auto`},
		"up without a Kubernetes binary": {[]string{"up", "--metal", "none"}, ui.ExitFailed, "no Kubernetes v1.36.3 binary found"},
		"up with a closed descriptor":    {[]string{"up", "--foreground", "--progress-fd", "-1", "--metal", "none"}, ui.ExitUsage, "--progress-fd -1 is not open"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newTerminal(t)
			t.Setenv("DROVER_KUBE_DIR", t.TempDir())
			got := c.run(tt.args...)
			if got.code != tt.code || !strings.Contains(got.err, tt.want) {
				t.Errorf("code %d, want %d:\n%s\nwant %q", got.code, tt.code, got.err, tt.want)
			}
			if _, err := os.Stat(c.home); err == nil {
				t.Error("a home was created")
			}
		})
	}
}

func TestDownWithoutAPlane(t *testing.T) {
	c := newTerminal(t)
	if got := c.run("down"); got.code != 0 || got.err != "The embedded plane was not running.\n" {
		t.Errorf("code %d:\n%s", got.code, got.err)
	}
}

func TestDownWithPurgeDeletesTheHome(t *testing.T) {
	c := newTerminal(t)
	c.stopped(plane.PhaseStopped)
	got := c.run("down", "--purge")
	if got.code != 0 || !strings.HasSuffix(got.err, "Deleted "+c.home+".\n") {
		t.Errorf("code %d:\n%s", got.code, got.err)
	}
	if _, err := os.Stat(c.home); err == nil {
		t.Error("the home is still there")
	}
}

func TestDownKeepsForeignDirectories(t *testing.T) {
	c := newTerminal(t)
	c.write("thesis.tex", "text")
	if got := c.run("down", "--purge"); got.code != ui.ExitFailed || !strings.Contains(got.err, "is not a home of Drover") {
		t.Errorf("code %d:\n%s", got.code, got.err)
	}
	if _, err := os.Stat(filepath.Join(c.home, "thesis.tex")); err != nil {
		t.Error(err)
	}
}

func TestHomeIsAbsolute(t *testing.T) {
	t.Setenv("DROVER_HOME", "relative/home")
	for flag, want := range map[string]string{"": "relative/home", "other": "other", "/srv/drover": "/srv/drover"} {
		got, err := (&homeFlag{dir: flag}).home()
		if err != nil || !filepath.IsAbs(got.Dir) || !strings.HasSuffix(got.Dir, want) {
			t.Errorf("--home %q is %q (%v)", flag, got.Dir, err)
		}
	}
}

func TestEveryCommandHasHelp(t *testing.T) {
	root := &cobra.Command{Use: "drover"}
	AddCommands(root, &ui.IO{})
	var names []string
	for _, cmd := range root.Commands() {
		names = append(names, cmd.Name())
		if cmd.Short == "" || cmd.Long == "" || cmd.GroupID != "plane" {
			t.Errorf("%s lacks a description or a group", cmd.Name())
		}
		if cmd.PersistentFlags().Lookup("home") == nil && cmd.Name() != "encryption" {
			t.Errorf("%s has no --home", cmd.Name())
		}
	}
	if diff := cmp.Diff([]string{"backup", "down", "encryption", "restore", "status", "up"}, names); diff != "" {
		t.Errorf("commands (-want +got):\n%s", diff)
	}
}

func TestProgressShowsEachStage(t *testing.T) {
	var out strings.Builder
	tell, _ := progress(&ui.IO{Err: &out}, map[string]string{"etcd": "Starting etcd", "metal": "Finding machines"})
	for _, e := range []plane.Event{
		{Stage: "etcd", Status: plane.StageStarted},
		{Stage: "etcd", Status: plane.StageDone, Duration: 400 * time.Millisecond},
		{Stage: "metal", Status: plane.StageSkipped, Error: "no machines here"},
		{Stage: "manager", Status: plane.StageFailed, Duration: 2 * time.Second},
		{Status: plane.AllReady},
	} {
		tell(e)
	}
	var got []string
	for line := range strings.Lines(out.String()) {
		got = append(got, strings.Join(strings.Fields(line), " "))
	}
	want := []string{"✓ Starting etcd 0.4s", "- Finding machines - no machines here", "✗ manager 2.0s"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("progress (-want +got):\n%s", diff)
	}
}

func TestEveryStageHasALabel(t *testing.T) {
	for _, labels := range []map[string]string{upStages, rotateStages} {
		for stage, label := range labels {
			verb, _, _ := strings.Cut(label, " ")
			if !strings.HasSuffix(verb, "ing") {
				t.Errorf("stage %q is shown as %q, want a present participle first", stage, label)
			}
		}
	}
}

func TestBackupSize(t *testing.T) {
	m := plane.Manifest{Files: []plane.ManifestFile{{Size: 1 << 20}, {Size: 1 << 19}}}
	if got := size(m); got != "1.5 MiB" {
		t.Errorf("got %s", got)
	}
}
