// Package background starts this program again as a process that outlives the command and its
// terminal. Start with Start.
package background

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// Options configure the process.
type Options struct {
	// Args are the arguments, without the program name.
	Args []string
	// Log is the file for the process's output; its directory is created.
	Log string
	// Files are inherited, starting at file descriptor 3.
	Files []*os.File
	// Env adds variables to the inherited environment.
	Env []string
}

// Start runs this program in the background. The caller waits for the process or releases it.
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

// Self returns the path of this program, even if its file has been replaced by a newer release: the
// link in /proc still refers to the running one.
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
