package build

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

const (
	// tailLines is how much of what the go command said an error repeats.
	tailLines = 20
	// stopGrace is how long an interrupted go command may take to clean up.
	stopGrace = 10 * time.Second
)

// goCommand is a run of the go command in the source directory.
type goCommand struct {
	ctx context.Context
	cmd *exec.Cmd
}

func (b Builder) goCommand(ctx context.Context, args ...string) goCommand {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = b.Source
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = stopGrace
	return goCommand{ctx: ctx, cmd: cmd}
}

// run returns what the command printed. Each line that it says on standard
// error is offered to progressed; those that it doesn't take explain a failure.
// p, if given, is kept up to date meanwhile.
func (g goCommand) run(p *progress, progressed func(line string) bool) ([]byte, error) {
	var stdout bytes.Buffer
	g.cmd.Stdout = &stdout
	stderr, err := g.cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := g.cmd.Start(); err != nil {
		return nil, explain(err, nil)
	}
	said := follow(stderr, p, progressed)
	if err := g.cmd.Wait(); err != nil {
		if g.ctx.Err() != nil {
			return nil, fmt.Errorf("interrupted: %w", g.ctx.Err())
		}
		return nil, explain(err, said)
	}
	return stdout.Bytes(), nil
}

// follow reads lines until the command closes its end, and returns the last of
// those that did not count as progress.
func follow(r io.Reader, p *progress, progressed func(line string) bool) (said []string) {
	lines := make(chan string)
	go func() {
		defer close(lines)
		s := bufio.NewScanner(r)
		s.Buffer(nil, 1<<20)
		for s.Scan() {
			lines <- s.Text()
		}
		io.Copy(io.Discard, r) //nolint:errcheck // Only so that the command never blocks on us.
	}()
	for {
		select {
		case line, open := <-lines:
			if !open {
				return said
			}
			if progressed == nil || !progressed(line) {
				said = append(said, line)
				said = said[max(0, len(said)-tailLines):]
			}
		case <-p.ticks():
			p.refresh()
		}
	}
}

// explain turns a failure of the go command into what the user can do about it.
func explain(err error, said []string) error {
	text := strings.Join(said, "\n")
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return fmt.Errorf("the go command is not on PATH (%w): install Go 1.26 or newer from https://go.dev/dl", err)
	case strings.Contains(text, syscall.ENOSPC.Error()):
		return fmt.Errorf("%w: a disk is full: building Kubernetes needs about 5 GiB, most of it in the directories "+
			"that \"go env GOCACHE GOMODCACHE GOTMPDIR\" prints; the go command said:\n%s", err, text)
	case text == "":
		return err
	}
	return fmt.Errorf("%w; the go command said:\n%s", err, text)
}

func cutDownload(line string) (module string, ok bool) {
	return strings.CutPrefix(line, "go: downloading ")
}

func lineSet(text []byte) iter.Seq2[string, bool] {
	return func(yield func(string, bool) bool) {
		for line := range strings.Lines(string(text)) {
			if !yield(strings.TrimSuffix(line, "\n"), true) {
				return
			}
		}
	}
}
