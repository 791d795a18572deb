package build

import (
	"fmt"
	"io"
	"time"
)

// How often the line is written again while nothing else happens.
const (
	terminalInterval = 500 * time.Millisecond
	logInterval      = 30 * time.Second
)

// progress tells a user what a long build is doing. A nil *progress is silent.
// It is not safe for concurrent use.
type progress struct {
	out      io.Writer
	terminal bool
	label    string
	text     string
	now      func() time.Time
	started  time.Time
	written  time.Time
	ticker   *time.Ticker
}

func newProgress(out io.Writer, terminal bool, label string) *progress {
	p := &progress{out: out, terminal: terminal, label: label, now: time.Now}
	p.started = p.now()
	p.ticker = time.NewTicker(p.interval())
	return p
}

func (p *progress) interval() time.Duration {
	if p.terminal {
		return terminalInterval
	}
	return logInterval
}

// show says what is going on now. It may be called thousands of times a second.
func (p *progress) show(text string) {
	p.text = text
	if p.now().Sub(p.written) >= p.interval() {
		p.refresh()
	}
}

// refresh writes the line with the time that has passed.
func (p *progress) refresh() {
	p.written = p.now()
	line := fmt.Sprintf("%s: %s (%s)", p.label, p.text, p.written.Sub(p.started).Round(time.Second))
	if p.terminal {
		fmt.Fprintf(p.out, "\r\x1b[K%s", line)
		return
	}
	fmt.Fprintln(p.out, line)
}

// ticks says when to refresh. Waiting on it with a nil *progress blocks forever.
func (p *progress) ticks() <-chan time.Time {
	if p == nil {
		return nil
	}
	return p.ticker.C
}

// end clears the line of a terminal for whoever writes next.
func (p *progress) end() {
	p.ticker.Stop()
	if p.terminal {
		fmt.Fprint(p.out, "\r\x1b[K")
	}
}
