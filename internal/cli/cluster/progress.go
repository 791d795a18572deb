package cluster

import (
	"cmp"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/drover-dev/drover/internal/cli/ui"
	"github.com/drover-dev/drover/internal/operate/lifecycle/workflow"
)

const (
	tick         = 100 * time.Millisecond
	longest      = 30 * time.Second // that a pipe hears nothing
	defaultWidth = 80
	clearLine    = "\r\033[K"
)

// progress shows a run. In a pipe it is a line for each change, and one now and then while nothing changes. On a terminal the last line is
// that of the running phase: what it waits for, and for how long.
type progress struct {
	io    *ui.IO
	total int

	mu      sync.Mutex
	number  int
	phase   string
	began   time.Time
	waiting string
	since   time.Time
	said    time.Time
	stop    chan struct{}
	stopped sync.WaitGroup
}

func newProgress(io *ui.IO, plan *workflow.Plan) *progress {
	p := &progress{io: io, total: len(plan.Phases), stop: make(chan struct{})}
	if io.Interactive {
		p.stopped.Go(p.animate)
	} else {
		p.stopped.Go(p.remind)
	}
	return p
}

// end leaves the terminal as it was.
func (p *progress) end() {
	close(p.stop)
	p.stopped.Wait()
}

func (p *progress) tell(e workflow.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch e.Status {
	case workflow.Started:
		p.number++
		p.phase, p.began, p.waiting = e.Phase, time.Now(), ""
		if !p.io.Interactive {
			p.line("   %d/%d %s", p.number, p.total, e.Phase)
		}
	case workflow.Waiting:
		p.waiting, p.since = strings.Join(strings.Fields(e.Detail), " "), time.Now()
		if !p.io.Interactive {
			p.wait()
		}
	case workflow.Note:
		p.line("       %s", e.Detail)
	default:
		p.finish(e)
	}
}

// wait prints what the running phase waits for.
func (p *progress) wait() {
	p.line("       %6s  %s", ui.Seconds(time.Since(p.began)), cmp.Or(p.waiting, "still at it"))
}

// finish prints the line of a phase that is over.
func (p *progress) finish(e workflow.Event) {
	if e.Status == workflow.Before || e.Phase != p.phase {
		p.number++
	}
	p.phase = ""
	switch e.Status {
	case workflow.Before:
		p.line(" ✓ %-28s  %8s  %s", e.Phase, "-", "done by an earlier run")
	case workflow.Skipped:
		p.line(" - %-28s  %8s  %s", e.Phase, ui.Seconds(e.Took), e.Detail)
	case workflow.Done:
		p.line(" ✓ %-28s  %8s", e.Phase, ui.Seconds(e.Took))
	default:
		p.line(" ✗ %-28s  %8s", e.Phase, ui.Seconds(e.Took))
	}
}

// line prints a line that stays.
func (p *progress) line(format string, args ...any) {
	if p.io.Interactive {
		format = clearLine + format
	}
	p.said = time.Now()
	fmt.Fprintf(p.io.Err, format+"\n", args...)
}

// remind says again what is waited for when nothing was said for long.
func (p *progress) remind() {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-p.stop:
			return
		case <-ticker.C:
			p.mu.Lock()
			if p.phase != "" && time.Since(p.said) >= longest {
				p.wait()
			}
			p.mu.Unlock()
		}
	}
}

func (p *progress) animate() {
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for {
		select {
		case <-p.stop:
			fmt.Fprint(p.io.Err, clearLine)
			return
		case <-ticker.C:
			p.mu.Lock()
			if p.phase != "" {
				fmt.Fprint(p.io.Err, clearLine+p.live(time.Now(), width()))
			}
			p.mu.Unlock()
		}
	}
}

// live is the line of the running phase, no longer than the terminal is wide.
func (p *progress) live(now time.Time, width int) string {
	line := fmt.Sprintf(" … %d/%d %s %s", p.number, p.total, p.phase, ui.Seconds(now.Sub(p.began)))
	if p.waiting != "" {
		line += fmt.Sprintf("  (%s) %s", ui.Seconds(now.Sub(p.since)), p.waiting)
	}
	if runes := []rune(line); len(runes) >= width {
		line = string(runes[:max(width-2, 0)]) + "…"
	}
	return line
}

func width() int {
	if w, _, err := term.GetSize(int(os.Stderr.Fd())); err == nil && w > 0 {
		return w
	}
	return defaultWidth
}
