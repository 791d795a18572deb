package ui

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"
)

const (
	redrawInterval = 100 * time.Millisecond
	checkInterval  = time.Second
	// signOfLife is the longest silence in a pipe while a stage runs.
	signOfLife   = 30 * time.Second
	defaultWidth = 80

	// Columns of the names of stages, so that their times line up.
	labelColumn = 44
	phaseColumn = 29

	clearLine = "\r\033[K"
	lineUp    = "\033[A\033[K"
)

// Progress shows the stages of a long command on Err. On a terminal it keeps one block up to date:
// the running stage with its time, and below it the current activity with its own. In a pipe it
// prints one line per change, and a sign of life every 30 seconds.
type Progress struct {
	io     *IO
	labels map[string]string
	column int
	began  time.Time
	width  func() int
	// total is the number of stages, or 0 if they are not counted.
	total int

	mu       sync.Mutex
	number   int
	stage    string
	started  time.Time
	activity string
	changed  time.Time
	// printed is when the last line was printed, and shown the number of lines in the block.
	printed time.Time
	shown   int
	stop    chan struct{}
}

// NewProgress shows stages by their labels. A stage without a label is shown by its name.
func NewProgress(io *IO, labels map[string]string) *Progress {
	return &Progress{io: io, labels: labels, column: labelColumn, began: time.Now(), width: terminalWidth}
}

// NewPhases shows a known number of phases by name, each with its number.
func NewPhases(io *IO, total int) *Progress {
	return &Progress{io: io, total: total, column: phaseColumn, began: time.Now(), width: terminalWidth}
}

// Elapsed returns the time since the progress was created.
func (p *Progress) Elapsed() time.Duration { return time.Since(p.began) }

// Start begins a stage.
func (p *Progress) Start(stage string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.endTicker()
	p.number++
	p.stage, p.activity, p.started, p.changed = stage, "", time.Now(), time.Now()
	p.printed = p.started
	if p.total > 0 && !p.io.Interactive {
		p.line("   %d/%d %s", p.number, p.total, stage)
	}
	p.stop = make(chan struct{})
	go p.tick(p.stop)
}

// Activity shows what the running stage is doing, such as "Creating control plane machine 1/3".
func (p *Progress) Activity(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	text = strings.Join(strings.Fields(text), " ")
	if text == p.activity {
		return
	}
	p.activity, p.changed = text, time.Now()
	if !p.io.Interactive {
		p.alive()
	}
}

// Note prints a line that stays.
func (p *Progress) Note(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.line("       %s", text)
}

// Done ends a stage that succeeded.
func (p *Progress) Done(stage string, took time.Duration) { p.finish("✓", stage, Seconds(took), "") }

// Failed ends a stage that failed. The command's error says why.
func (p *Progress) Failed(stage string, took time.Duration) {
	p.finish("✗", stage, Seconds(took), "")
}

// Skipped ends a stage that had nothing to do.
func (p *Progress) Skipped(stage, reason string) { p.finish("-", stage, "-", reason) }

// Earlier shows a stage that an earlier run has done.
func (p *Progress) Earlier(stage string) { p.finish("✓", stage, "-", "done by an earlier run") }

// Close removes the block from the terminal.
func (p *Progress) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.endTicker()
	fmt.Fprint(p.io.Err, p.erase())
}

func (p *Progress) finish(mark, stage, took, detail string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.endTicker()
	if stage != p.stage {
		p.number++ // It ended without having started.
	}
	p.stage = ""
	p.line("%s", strings.TrimRight(fmt.Sprintf(" %s %-*s  %7s  %s", mark, p.column, p.label(stage), took, detail), " "))
}

func (p *Progress) label(stage string) string {
	if l, ok := p.labels[stage]; ok {
		return l
	}
	return stage
}

// line prints a line above the block.
func (p *Progress) line(format string, args ...any) {
	p.printed = time.Now()
	fmt.Fprintf(p.io.Err, p.erase()+format+"\n", args...)
}

// alive prints the current activity of the running stage.
func (p *Progress) alive() {
	text := p.activity
	if text == "" {
		text = "Running " + p.label(p.stage)
	}
	p.line("       %6s  %s", Seconds(time.Since(p.started)), text)
}

// erase returns what removes the block from the terminal.
func (p *Progress) erase() string {
	if !p.io.Interactive {
		return ""
	}
	lines := p.shown
	p.shown = 0
	return clearLine + strings.Repeat(lineUp, max(lines-1, 0))
}

func (p *Progress) endTicker() {
	if p.stop != nil {
		close(p.stop)
		p.stop = nil
	}
}

// tick updates the block, or prints signs of life, until stop is closed.
func (p *Progress) tick(stop <-chan struct{}) {
	interval := checkInterval
	if p.io.Interactive {
		interval = redrawInterval
	}
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		if !p.update(stop) {
			return
		}
		select {
		case <-stop:
			return
		case <-ticker.C:
		}
	}
}

// update reports whether the stage is still running.
func (p *Progress) update(stop <-chan struct{}) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-stop:
		return false
	default:
	}
	switch {
	case p.io.Interactive:
		lines := p.block(time.Now(), p.width())
		fmt.Fprint(p.io.Err, p.erase()+strings.Join(lines, "\n"))
		p.shown = len(lines)
	case time.Since(p.printed) >= signOfLife:
		p.alive()
	}
	return true
}

// block returns the lines about the running stage, none wider than the terminal.
func (p *Progress) block(now time.Time, width int) []string {
	head := " … "
	if p.total > 0 {
		head += fmt.Sprintf("%d/%d ", p.number, p.total)
	}
	lines := []string{fit(fmt.Sprintf("%s%s  %s", head, p.label(p.stage), Seconds(now.Sub(p.started))), width)}
	if p.activity != "" {
		since := fmt.Sprintf(" (%s)", Seconds(now.Sub(p.changed)))
		lines = append(lines, fit("     "+p.activity, width-len(since))+since)
	}
	return lines
}

// fit cuts a line that is as wide as the terminal or wider.
func fit(line string, width int) string {
	runes := []rune(line)
	if len(runes) < width {
		return line
	}
	return string(runes[:max(width-2, 0)]) + "…"
}

func terminalWidth() int {
	if w, _, err := term.GetSize(int(os.Stderr.Fd())); err == nil && w > 0 {
		return w
	}
	return defaultWidth
}

// Seconds formats a duration in seconds.
func Seconds(d time.Duration) string { return fmt.Sprintf("%.1fs", d.Seconds()) }
