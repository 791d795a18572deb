// Package process names processes for good and ends them. A number is used again by the kernel
// after a while or a reboot; a number with its start time and boot is not. It starts nothing. Start
// with Identify.
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

// Identify describes a living process.
func Identify(pid int) Process {
	start, err := startTime(pid)
	if err != nil {
		return Process{}
	}
	return Process{PID: pid, Start: start}
}

// Alive tells whether any thread of the process still runs. A process that was killed holds its
// ports and locks until the last one has ended, long after /proc shows its first thread as a
// zombie.
func (p Process) Alive() bool {
	return p.PID > 0 && p == Identify(p.PID) && !p.Wait(0)
}

// Signal sends a signal, to this process and no other that has its number.
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

// startTime joins the boot id and the 22nd field of /proc/PID/stat. The second field is the name in
// parentheses and may hold anything, so fields are counted from its end.
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

// MemoryBytes counts the pages that a process holds, those that it shares with others by its share,
// so that the figures of several processes of the same program add up to what they really use. It
// is 0 if the process is gone.
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
