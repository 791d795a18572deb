package ui

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func TestProgressInAPipeIsOneLinePerStage(t *testing.T) {
	var out bytes.Buffer
	p := NewProgress(&IO{Err: &out}, map[string]string{"a": "The first"})
	p.Start("a")
	p.Done("a", 1500*time.Millisecond)
	p.Start("b")
	p.Failed("b", 0)
	p.Start("c")
	p.Skipped("c", "not here")
	want := []string{
		" ✓ The first" + strings.Repeat(" ", 35+5) + "1.5s",
		" ✗ b" + strings.Repeat(" ", 43+5) + "0.0s",
		" - c" + strings.Repeat(" ", 43+8) + "-  not here",
	}
	if diff := cmp.Diff(want, strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")); diff != "" {
		t.Errorf("printed (-want +got):\n%s", diff)
	}
	if strings.ContainsAny(out.String(), "\r\033") {
		t.Error("a pipe gets control characters")
	}
}

func TestPhasesInAPipeAreOneLinePerChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		p := NewPhases(&IO{Err: &out}, 3)
		p.Earlier("First")
		p.Start("Second")
		p.Activity("Creating machine\n 1/2")
		p.Activity("Creating machine 1/2")
		p.Note("worth knowing")
		time.Sleep(4 * time.Second)
		p.Activity("Creating machine 2/2")
		p.Done("Second", 4*time.Second)
		p.Start("Third")
		p.Close()
		want := []string{
			" ✓ First" + strings.Repeat(" ", 24+2+6) + "-  done by an earlier run",
			"   2/3 Second",
			"         0.0s  Creating machine 1/2",
			"       worth knowing",
			"         4.0s  Creating machine 2/2",
			" ✓ Second" + strings.Repeat(" ", 23+2+3) + "4.0s",
			"   3/3 Third",
		}
		if diff := cmp.Diff(want, strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")); diff != "" {
			t.Errorf("printed (-want +got):\n%s", diff)
		}
	})
}

func TestProgressInAPipePrintsHeartbeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out lockedBuffer
		p := NewPhases(&IO{Err: &out}, 1)
		p.Start("Slow")
		time.Sleep(35 * time.Second)
		p.Activity("Creating machine 1/2")
		time.Sleep(65 * time.Second)
		p.Done("Slow", 100*time.Second)
		time.Sleep(time.Minute)
		if got := strings.Count(out.String(), "Creating machine 1/2"); got != 3 {
			t.Errorf("the activity is printed %d times, want 3:\n%s", got, out.String())
		}
		if !strings.Contains(out.String(), " 30.0s  Running Slow") {
			t.Errorf("no sign of life without an activity:\n%s", out.String())
		}
	})
}

func TestProgressOnATerminalUpdatesOneBlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out lockedBuffer
		p := NewPhases(&IO{Err: &out, Interactive: true}, 2)
		p.Start("First")
		p.Activity("Creating machine 1/2")
		time.Sleep(time.Second)
		p.Note("worth knowing")
		time.Sleep(time.Second)
		p.Done("First", 2*time.Second)
		p.Close()
		want := []string{"       worth knowing", " ✓ First" + strings.Repeat(" ", 24+2+3) + "2.0s", ""}
		if diff := cmp.Diff(want, screen(out.String())); diff != "" {
			t.Errorf("what remains on the terminal (-want +got):\n%s", diff)
		}
		if !strings.Contains(out.String(), " … 1/2 First  1.0s\n     Creating machine 1/2 (1.0s)") {
			t.Errorf("the block was never shown:\n%q", out.String())
		}
	})
}

// screen returns the lines that a terminal shows after the output.
func screen(output string) []string {
	lines := []string{""}
	for output != "" {
		last := len(lines) - 1
		switch {
		case strings.HasPrefix(output, lineUp):
			lines, output = append(lines[:last-1], ""), output[len(lineUp):]
		case strings.HasPrefix(output, clearLine):
			lines[last], output = "", output[len(clearLine):]
		case output[0] == '\n':
			lines, output = append(lines, ""), output[1:]
		default:
			_, n := utf8.DecodeRuneInString(output)
			lines[last] += output[:n]
			output = output[n:]
		}
	}
	return lines
}

func TestBlockFitsTheTerminal(t *testing.T) {
	began := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	p := &Progress{number: 2, total: 3, stage: "CreateWorkloadCluster", started: began, activity: "Creating control plane machine 1/3: Machine ünïcödé is not ready", changed: began.Add(4 * time.Second)}
	want := []string{" … 2/3 CreateWorkloadCluster  10.0s", "     Creating control plane machine 1/3: Machine ünïcödé is not ready (6.0s)"}
	if diff := cmp.Diff(want, p.block(began.Add(10*time.Second), 200)); diff != "" {
		t.Errorf("block (-want +got):\n%s", diff)
	}
	for width := 12; width < 80; width++ {
		for _, line := range p.block(began.Add(10*time.Second), width) {
			if n := utf8.RuneCountInString(line); n >= width || !utf8.ValidString(line) {
				t.Errorf("%q has %d columns on a terminal of %d", line, n, width)
			}
		}
	}
}
