// Package background starts this program again, as a process that outlives the command and its
// terminal. It owns how that is done and nothing of what the process does. Start with Start.
package background

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// Options select how the process is started.
type Options struct {
	// Args are those of the program, without its name.
	Args []string
	// Log takes all that the process says; its directory is made.
	Log string
	// Files are passed on, from file descriptor 3.
	Files []*os.File
	// Env is what the process finds in its environment besides what is there.
	Env []string
}

// Start runs this program in the background. Whoever starts it waits for it, or releases it.
func Start(o Options) (*exec.Cmd, error) {
	if err := os.MkdirAll(filepath.Dir(o.Log), 0o700); err != nil {
		return nil, fmt.Errorf("creating the log directory: %w", err)
	}
	log, err := os.OpenFile(o.Log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the log: %w", err)
	}
	defer log.Close()
	cmd := exec.Command(Self(), o.Args...)
	cmd.Args[0] = "drover"
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = log, log, o.Files
	cmd.Env = append(os.Environ(), o.Env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return cmd, nil
}

// Self is this program, also if its file has been replaced by a newer release since it was started:
// the link in /proc still leads to the one that runs.
func Self() string {
	const link = "/proc/self/exe"
	path, err := os.Executable()
	if err != nil {
		return link
	}
	named, err := os.Stat(path)
	if err != nil {
		return link
	}
	if running, err := os.Stat(link); err != nil || !os.SameFile(named, running) {
		return link
	}
	return path
}
