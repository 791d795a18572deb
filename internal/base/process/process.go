// Package process identifies processes permanently and terminates them. The kernel reuses process
// IDs, but not together with start time and boot ID. It starts nothing. Start with Identify.
package process

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// Process identifies one process. The zero Process is none.
type Process struct {
	PID   int    `json:"pid"`
	Start string `json:"start,omitempty"`
}

// Identify returns the identity of a running process.
func Identify(pid int) Process {
	start, err := startTime(pid)
	if err != nil {
		return Process{}
	}
	return Process{PID: pid, Start: start}
}

// Alive reports whether any thread of the process is still running. A killed process holds its
// ports and locks until its last thread has ended, long after /proc shows the first thread as a
// zombie.
func (p Process) Alive() bool {
	return p.PID > 0 && p == Identify(p.PID) && !p.Wait(0)
}

// Signal sends a signal to this process, and to no other with the same ID.
func (p Process) Signal(signal unix.Signal) error {
	fd, err := unix.PidfdOpen(p.PID, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if p != Identify(p.PID) {
		return os.ErrProcessDone
	}
	return unix.PidfdSendSignal(fd, signal, nil, 0)
}

// Kill ends a process immediately and waits until it has exited.
func (p Process) Kill(timeout time.Duration) error {
	deadline := time.Now().Add(timeout)
	for p.Alive() {
		if time.Now().After(deadline) {
			return fmt.Errorf("timed out waiting for process %d of an earlier start to exit: kill it and try again", p.PID)
		}
		_ = p.Signal(unix.SIGKILL)
		p.Wait(20 * time.Millisecond)
	}
	return nil
}

// Wait reports whether the process exits within the timeout.
func (p Process) Wait(timeout time.Duration) (ended bool) {
	fd, err := unix.PidfdOpen(p.PID, 0)
	if err != nil {
		return true
	}
	defer unix.Close(fd)
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(timeout.Milliseconds()))
	return n > 0 && err == nil
}

// startTime joins the boot ID and the 22nd field of /proc/PID/stat. The second field is the name in
// parentheses and may contain anything, so fields are counted from its end.
func startTime(pid int) (string, error) {
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return "", err
	}
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 20 {
		return "", os.ErrProcessDone
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", err
	}
	return string(bytes.TrimSpace(boot)) + "/" + string(fields[19]), nil
}

// MemoryBytes returns the memory of a process, with shared pages counted proportionally, so that
// the figures of several processes add up. It is 0 if the process has exited.
func MemoryBytes(pid int) int64 {
	data, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "smaps_rollup"))
	if err != nil {
		return 0
	}
	for line := range bytes.Lines(data) {
		if fields := bytes.Fields(line); len(fields) == 3 && string(fields[0]) == "Pss:" {
			kilobytes, _ := strconv.ParseInt(string(fields[1]), 10, 64)
			return kilobytes << 10
		}
	}
	return 0
}
