package build

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

const (
	terminalInterval = 500 * time.Millisecond
	logInterval      = 30 * time.Second
	// enoughPackages is the number of compiled packages that an estimate requires.
	enoughPackages = 50
)

// ProgressOptions configures a Progress.
type ProgressOptions struct {
	Out io.Writer
	// Terminal updates one line in place instead of printing lines periodically.
	Terminal bool
	// Interval overrides how often a line is printed.
	Interval time.Duration
}

// Progress reports everything that is being built in one line, with an estimate of the time left.
// It is safe for concurrent use.
type Progress struct {
	ProgressOptions
	now func() time.Time

	mu      sync.Mutex
	started time.Time
	written time.Time
	text    string
	modules int
	// unlisted counts the tasks whose packages are not known yet: until it is 0 there is no
	// estimate.
	unlisted int
	// packages are all that are needed; the value is true once a package is compiled.
	packages map[string]bool
	// compiled counts the packages that the go command compiled since compiling began.
	compiled  int
	compiling time.Time
}

// NewProgress returns a Progress. Stop must be called at the end.
func NewProgress(o ProgressOptions) *Progress {
	if o.Interval == 0 {
		o.Interval = logInterval
	}
	if o.Terminal {
		o.Interval = terminalInterval
	}
	return &Progress{ProgressOptions: o, now: time.Now, started: time.Now(), packages: map[string]bool{}}
}

// Start reports until stop is called, which also clears the line of a terminal.
func (p *Progress) Start() (stop func()) {
	ticker, end, ended := time.NewTicker(p.Interval), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-end:
				return
			case <-ticker.C:
				p.refresh()
			}
		}
	}()
	return func() {
		ticker.Stop()
		close(end)
		<-ended
		p.clear()
	}
}

// Print prints a permanent line.
func (p *Progress) Print(format string, args ...any) {
	p.clear()
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprintf(p.Out, format+"\n", args...)
}

func (p *Progress) clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.Terminal && !p.written.IsZero() {
		fmt.Fprint(p.Out, "\r\x1b[K")
	}
}

// refresh writes the line.
func (p *Progress) refresh() {
	p.mu.Lock()
	defer p.mu.Unlock()
	line := p.line()
	if line == "" {
		return
	}
	p.written = p.now()
	if p.Terminal {
		fmt.Fprintf(p.Out, "\r\x1b[K%s", line)
		return
	}
	fmt.Fprintln(p.Out, line)
}

// line returns the current state, or "" before anything happens.
func (p *Progress) line() string {
	if p.text == "" && p.modules == 0 {
		return ""
	}
	text := p.text
	var facts []string
	if text == "" {
		text = "Preparing"
	}
	if p.compiled > 0 {
		facts = append(facts, fmt.Sprintf("%d of %d packages", len(p.packages)-p.remaining(), len(p.packages)))
	}
	if p.modules > 0 {
		facts = append(facts, fmt.Sprintf("%d modules downloaded", p.modules))
	}
	if left, ok := p.estimate(); ok {
		facts = append(facts, "about "+roughly(left)+" left")
	}
	if len(facts) > 0 {
		text += ": " + strings.Join(facts, ", ")
	}
	return fmt.Sprintf("%s (%s)", text, p.now().Sub(p.started).Round(time.Second))
}

func (p *Progress) remaining() (n int) {
	for _, done := range p.packages {
		if !done {
			n++
		}
	}
	return n
}

// estimate predicts the time left from the packages that remain.
func (p *Progress) estimate() (left time.Duration, ok bool) {
	if p.unlisted > 0 || p.compiled < enoughPackages {
		return 0, false
	}
	perPackage := p.now().Sub(p.compiling) / time.Duration(p.compiled)
	return perPackage * time.Duration(p.remaining()), true
}

// roughly rounds an estimate to its precision.
func roughly(d time.Duration) string {
	switch {
	case d > 2*time.Minute:
		return fmt.Sprintf("%dm", int(d.Round(time.Minute)/time.Minute))
	case d < 10*time.Second:
		return "10s"
	}
	return d.Round(10 * time.Second).String()
}
