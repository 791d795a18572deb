package build

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

const (
	// tailLines is the number of lines of the go command's output in an error.
	tailLines = 20
	// compilerGC makes compilers collect garbage less often: they take a fifth less CPU time for
	// some hundred MiB more memory. It does not change what they produce.
	compilerGC = "400"
	// downloads is how many modules the go command fetches at the same time; by default as many as
	// there are cores, although downloads wait for the network.
	downloads = "16"
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
	if goos, goarch, ok := strings.Cut(b.Platform, "/"); ok {
		cmd.Env = append(cmd.Env, "GOOS="+goos, "GOARCH="+goarch)
	}
	if os.Getenv("GOGC") == "" {
		cmd.Env = append(cmd.Env, "GOGC="+compilerGC)
	}
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = stopGrace
	return goCommand{ctx: ctx, cmd: cmd}
}

// run returns what the command prints. Each line on standard error is offered to progressed; the
// lines that it does not accept explain a failure.
func (g goCommand) run(progressed func(line string) bool) ([]byte, error) {
	var stdout bytes.Buffer
	g.cmd.Stdout = &stdout
	stderr, err := g.cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := g.cmd.Start(); err != nil {
		return nil, explain(err, nil)
	}
	said := follow(stderr, progressed)
	if err := g.cmd.Wait(); err != nil {
		if g.ctx.Err() != nil {
			return nil, fmt.Errorf("interrupted: %w", g.ctx.Err())
		}
		return nil, explain(err, said)
	}
	return stdout.Bytes(), nil
}

// follow reads lines until the command closes its end, and returns the last of those that are not
// progress.
func follow(r io.Reader, progressed func(line string) bool) (said []string) {
	s := bufio.NewScanner(r)
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		if progressed != nil && progressed(s.Text()) {
			continue
		}
		said = append(said, s.Text())
		said = said[max(0, len(said)-tailLines):]
	}
	io.Copy(io.Discard, r) //nolint:errcheck // keeps the command from blocking
	return said
}

// explain adds to a failure of the go command what the user can do about it.
func explain(err error, said []string) error {
	text := strings.Join(said, "\n")
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return fmt.Errorf("the go command is not on PATH (%w): install Go 1.26 or newer from https://go.dev/dl", err)
	case strings.Contains(text, syscall.ENOSPC.Error()):
		return fmt.Errorf("%w: disk full: building Kubernetes needs about 5 GiB, most of it in the directories "+
			"that \"go env GOCACHE GOMODCACHE GOTMPDIR\" prints; output of the go command:\n%s", err, text)
	case text == "":
		return err
	}
	return fmt.Errorf("%w; output of the go command:\n%s", err, text)
}
