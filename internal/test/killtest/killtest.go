// Package killtest kills a command in each of its phases, and checks that it resumes there. It
// knows what `drover create|upgrade|delete cluster` and `drover recover` print and record, and
// nothing else. Start with Everywhere.
package killtest

import (
	"bufio"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/drover-dev/drover/internal/operate/lifecycle/phase"
)

// repeated is the phase that every run repeats.
const repeated = "SetupAndValidate"

// Command is a command that is run repeatedly, with the same arguments in the same directory.
type Command struct {
	// New prepares the command.
	New func() *exec.Cmd
	// Record is where the command records its progress.
	Record phase.Record
	// Phases are the phases of the command.
	Phases []string
	// Inside is part of the activity that the command reports in the middle of a phase.
	Inside map[string]string
	// Killed is called after each kill; it may be nil.
	Killed func(phase string)
}

// Everywhere kills the command in one phase after the other, and then lets it finish. It returns
// the output of the last run.
func Everywhere(t testing.TB, c Command) string {
	t.Helper()
	var done []string
	for _, phase := range c.Phases {
		for _, waiting := range slices.Compact([]string{"", c.Inside[phase]}) {
			if slices.Contains(done, phase) {
				continue // It was faster than the kill.
			}
			said, ended := c.KillIn(t, phase, waiting)
			c.checkResumed(t, said, done)
			if _, err := os.Stat(c.Record.Path()); ended || errors.Is(err, fs.ErrNotExist) && phase == c.Phases[len(c.Phases)-1] {
				return said // All was done already.
			}
			if c.Killed != nil {
				c.Killed(phase)
			}
			done = Recorded(t, c.Record)
		}
	}
	said, err := c.New().CombinedOutput()
	if err != nil {
		t.Fatalf("after it was killed in each phase, it did not end well: %v\n%s", err, said)
	}
	c.checkResumed(t, string(said), done)
	return string(said)
}

// KillIn runs the command until it is in a phase and reports an activity, and kills it there. A
// last phase with nothing to do may have ended before.
func (c Command) KillIn(t testing.TB, name, waiting string) (said string, ended bool) {
	t.Helper()
	cmd := c.New()
	output, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	inside, killed := false, false
	for lines := bufio.NewScanner(output); lines.Scan(); {
		all.WriteString(lines.Text() + "\n")
		f := strings.Fields(lines.Text())
		begins := len(f) == 2 && strings.Contains(f[0], "/")
		// If the phase reported no such activity, kill it in the next one.
		if inside && begins || (inside || begins && f[1] == name) && strings.Contains(lines.Text(), waiting) {
			_ = cmd.Process.Kill()
			killed = true
		}
		inside = inside || begins && f[1] == name
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if !killed || cmd.ProcessState.Exited() && cmd.ProcessState.ExitCode() != 0 {
		t.Fatalf("it ended with %d before it could be killed in %s:\n%s", cmd.ProcessState.ExitCode(), name, all.String())
	}
	return all.String(), cmd.ProcessState.Exited()
}

// checkResumed checks that exactly the phases that were recorded as done were not run again.
func (c Command) checkResumed(t testing.TB, said string, done []string) {
	t.Helper()
	var before []string
	for line := range strings.Lines(said) {
		// The table of times at the end names these phases again.
		if f := strings.Fields(line); len(f) > 1 && f[0] == "✓" && strings.Contains(line, "done by an earlier run") {
			before = append(before, f[1])
		}
	}
	if diff := cmp.Diff(done, before); diff != "" {
		t.Errorf("what was done before, and what was not done again (-want +got):\n%s\n%s", diff, said)
	}
}

// Recorded returns the phases that are recorded as done, without the one that every run repeats.
func Recorded(t testing.TB, at phase.Record) []string {
	t.Helper()
	data, err := os.ReadFile(filepath.Clean(at.Path()))
	if err != nil {
		t.Fatalf("what was done is not recorded: %v", err)
	}
	var record struct{ Done []struct{ Name string } }
	if err := yaml.Unmarshal(data, &record); err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, d := range record.Done {
		if d.Name != repeated {
			out = append(out, d.Name)
		}
	}
	return out
}
