package main

import (
	"context"
	"os"
	"os/exec"
	"syscall"
)

// low is the prefix of commands that must not slow the tests down.
func low() []string { return []string{"nice", "-n", "10"} }

// lower is the prefix of tests that can wait: they have no timeouts that a busy machine exceeds.
func lower() []string { return []string{"nice", "-n", "5"} }

// compiling returns the flags that compile test binaries in half the time. The linters vet the
// code; "go test" would vet every dependency too. Stack traces need no debugging information.
func compiling() []string { return []string{"-vet=off", "-ldflags=-s -w"} }

func (r *run) command(ctx context.Context, env string, args ...string) *exec.Cmd {
	return command(ctx, r.root, env, args...)
}

// command prepares a command in its own process group, which is interrupted with ctx.
func command(ctx context.Context, dir, env string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), env)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) }
	// Long enough for tests to stop their processes.
	cmd.WaitDelay = 3 * grace
	return cmd
}

// locked writes to the output of a run.
type locked struct{ run *run }

func (l *locked) Write(p []byte) (int, error) {
	l.run.print(string(p))
	return len(p), nil
}

// burn keeps one core busy until ctx ends.
func burn(ctx context.Context) error {
	turns := 0
	for ctx.Err() == nil {
		turns++
	}
	return nil
}
