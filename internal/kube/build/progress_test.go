package build

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"
)

// clock is a clock that a test advances.
type clock struct{ time.Time }

func newTestProgress(o ProgressOptions) (*Progress, *clock) {
	p := NewProgress(o)
	c := &clock{p.started}
	p.now = func() time.Time { return c.Time }
	return p, c
}

func (c *clock) pass(d time.Duration) { c.Time = c.Add(d) }

// packages returns n that are compiled once per version.
func packages(n int, version string) []listedPackage {
	var all []listedPackage
	for i := range n {
		path := fmt.Sprintf("example.com/p%d", i)
		all = append(all, listedPackage{path: path, identity: path + "@" + version})
	}
	all[n-1].program = true
	return all
}

func TestProgressLine(t *testing.T) {
	p, now := newTestProgress(ProgressOptions{Out: io.Discard})
	one, two := p.Task("drover"), p.Task("Kubernetes v1.36.3")
	want := func(want string) {
		t.Helper()
		if got := p.line(); got != want {
			t.Errorf("got  %q\nwant %q", got, want)
		}
	}
	want("")
	one.downloaded()
	two.downloaded()
	now.pass(5 * time.Second)
	want("Preparing: 2 modules downloaded (5s)")
	one.list(packages(100, "v1"))
	for _, l := range packages(99, "v1") {
		now.pass(time.Second)
		one.compiled(l.path)
	}
	want("Compiling drover: 99 of 100 packages, 2 modules downloaded (1m44s)")
	two.list(packages(400, "v1"))
	want("Compiling drover: 99 of 400 packages, 2 modules downloaded, about 5m left (1m44s)")
	one.compiled("example.com/p99")
	want("Linking drover: 100 of 400 packages, 2 modules downloaded, about 5m left (1m44s)")
	two.done()
	want("Linking drover: 400 of 400 packages, 2 modules downloaded, about 10s left (1m44s)")
}

func TestTaskYieldsWhenItsProgramsLink(t *testing.T) {
	p, _ := newTestProgress(ProgressOptions{Out: io.Discard})
	task := p.Task("drover")
	all := packages(3, "v1")
	task.list(all)
	for i, l := range all {
		task.compiled(l.path)
		select {
		case <-task.released:
			if i < len(all)-1 {
				t.Errorf("yielded after package %d of %d", i+1, len(all))
			}
		default:
			if i == len(all)-1 {
				t.Error("did not yield when the program was compiled")
			}
		}
	}
}

func TestProgressIsRewrittenOnATerminalOnly(t *testing.T) {
	for terminal, want := range map[bool]string{
		true:  "\r\x1b[KPreparing: 1 modules downloaded (0s)\r\x1b[Kdone\n",
		false: "Preparing: 1 modules downloaded (0s)\ndone\n",
	} {
		var out bytes.Buffer
		p, _ := newTestProgress(ProgressOptions{Out: &out, Terminal: terminal})
		p.Task("it").downloaded()
		p.refresh()
		p.Print("done")
		if out.String() != want {
			t.Errorf("terminal %t:\ngot  %q\nwant %q", terminal, out.String(), want)
		}
	}
}

func TestApproximateDuration(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "10s", 14 * time.Second: "10s", 95 * time.Second: "1m40s", 150 * time.Second: "3m", 11*time.Minute + 10*time.Second: "11m",
	} {
		if got := roughly(d); got != want {
			t.Errorf("%s is about %s, want %s", d, got, want)
		}
	}
}

func TestExplain(t *testing.T) {
	failed := errors.New("exit status 1")
	tests := []struct {
		name string
		said []string
		want string
	}{
		{"silence adds nothing", nil, "exit status 1"},
		{"what was said is repeated", []string{"a", "b"}, "exit status 1; output of the go command:\na\nb"},
		{"a full disk is named", []string{"write x: no space left on device"}, "disk full: building Kubernetes needs about 5 GiB"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := explain(failed, tt.said)
			if !errors.Is(err, failed) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %q, want it to wrap the failure and say %q", err, tt.want)
			}
		})
	}
}

func TestFollowKeepsTheLastLinesThatAreNotProgress(t *testing.T) {
	var text strings.Builder
	for range tailLines {
		text.WriteString("progress\nearly\n")
	}
	text.WriteString("the end\n")
	said := follow(strings.NewReader(text.String()), func(line string) bool { return line == "progress" })
	if len(said) != tailLines || said[tailLines-1] != "the end" || said[0] != "early" {
		t.Errorf("kept %d lines, from %q to %q", len(said), said[0], said[len(said)-1])
	}
}
