// Command bench measures what Drover promises: how soon a plane is ready, what
// it costs when idle, how one manager compares with three, and how soon each
// part comes back. It prints figures and never judges them.
//
//	make bench                    # all of it
//	go run ./test/bench -only up  # one part
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// part is one thing to measure. Parts run in order on the same plane.
type part struct {
	name  string
	title string
	run   func(context.Context, *bench) error
}

var parts = []part{
	{"up", "Warm start to fully ready", measureUp},
	{"idle", "Idle plane: memory and CPU", measureIdle},
	{"managers", "One manager beside upstream's three", measureManagers},
	{"recovery", "SIGKILL of each component until all are ready again", measureRecovery},
}

// bench is what the parts share.
type bench struct {
	drover string
	home   string
	work   string
	rounds int
	idle   time.Duration
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run() error {
	only := flag.String("only", "", "measure one part: up, idle, managers or recovery")
	b := &bench{}
	flag.StringVar(&b.drover, "drover", "bin/drover", "the program to measure")
	flag.IntVar(&b.rounds, "rounds", 5, "how often to repeat what has a median")
	flag.DurationVar(&b.idle, "idle", time.Minute, "how long to watch an idle plane")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()

	work, err := os.MkdirTemp("", "drover-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	b.work, b.home = work, filepath.Join(work, "home")
	if b.drover, err = filepath.Abs(b.drover); err != nil {
		return err
	}
	fmt.Fprintf(os.Stdout, "%d cores, %s/%s, %s\n", runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, cpuModel())
	defer func() { _, _ = b.run(context.WithoutCancel(ctx), "down", "--purge") }()
	return b.measure(ctx, *only)
}

func (b *bench) measure(ctx context.Context, only string) error {
	for _, p := range parts {
		if only != "" && only != p.name {
			continue
		}
		fmt.Fprintf(os.Stdout, "\n%s\n", p.title)
		if err := p.run(ctx, b); err != nil {
			return fmt.Errorf("measuring %q: %w", p.name, err)
		}
	}
	return nil
}

func cpuModel() string {
	data, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(data)) {
		if name, ok := strings.CutPrefix(line, "model name"); ok {
			return strings.Trim(name, " \t:\n")
		}
	}
	return "unknown CPU"
}

// row prints one figure.
func row(name, format string, args ...any) {
	fmt.Fprintf(os.Stdout, "  %-44s %s\n", name, fmt.Sprintf(format, args...))
}
