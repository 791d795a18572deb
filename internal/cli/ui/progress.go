package ui

import (
	"fmt"
	"sync"
	"time"
)

// Progress shows stages of long work, one line each. On a terminal the line of
// the running stage counts the seconds.
type Progress struct {
	io     *IO
	labels map[string]string
	began  time.Time

	mu      sync.Mutex
	current string
	stop    chan struct{}
}

// NewProgress shows stages by the labels given; a stage without one is shown
// by its own name.
func NewProgress(io *IO, labels map[string]string) *Progress {
	return &Progress{io: io, labels: labels, began: time.Now()}
}

// Start begins a stage.
func (p *Progress) Start(stage string) {
	if !p.io.Interactive {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.endTicker()
	p.current, p.stop = stage, make(chan struct{})
	go p.tick(p.label(stage), time.Now(), p.stop)
}

// Done ends a stage well.
func (p *Progress) Done(stage string, took time.Duration) { p.finish("✓", stage, took) }

// Failed ends a stage badly; the reason is the command's error.
func (p *Progress) Failed(stage string, took time.Duration) { p.finish("✗", stage, took) }

// Skipped ends a stage that was not needed, and says why.
func (p *Progress) Skipped(stage, reason string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.endTicker()
	fmt.Fprintf(p.io.Err, "%s - %s: %s\n", p.erase(), p.label(stage), reason)
}

// Elapsed is the time since the progress was made.
func (p *Progress) Elapsed() time.Duration { return time.Since(p.began) }

func (p *Progress) finish(mark, stage string, took time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.endTicker()
	fmt.Fprintf(p.io.Err, "%s %s %-46s %6s\n", p.erase(), mark, p.label(stage), Seconds(took))
}

// erase clears the line that counts.
func (p *Progress) erase() string {
	if p.io.Interactive {
		return "\r\033[K"
	}
	return ""
}

func (p *Progress) endTicker() {
	if p.stop != nil {
		close(p.stop)
		p.stop = nil
	}
}

func (p *Progress) label(stage string) string {
	if l, ok := p.labels[stage]; ok {
		return l
	}
	return stage
}

func (p *Progress) tick(label string, began time.Time, stop <-chan struct{}) {
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for {
		p.mu.Lock()
		select {
		case <-stop:
			p.mu.Unlock()
			return
		default:
			fmt.Fprintf(p.io.Err, "\r\033[K … %-46s %6s", label, Seconds(time.Since(began)))
		}
		p.mu.Unlock()
		<-ticker.C
	}
}

// Seconds formats a duration as people compare them.
func Seconds(d time.Duration) string { return fmt.Sprintf("%.1fs", d.Seconds()) }
