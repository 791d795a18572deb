package local

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// process names one process for good: a number is used again by the kernel, a
// number with its start time and boot is not.
type process struct {
	PID   int    `json:"pid"`
	Start string `json:"start"`
}

// identify describes a process that lives.
func identify(pid int) (process, error) {
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return process{}, err
	}
	// The name before the last parenthesis may hold anything.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 20 || string(fields[0]) == "Z" {
		return process{}, os.ErrProcessDone
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return process{}, err
	}
	return process{PID: pid, Start: string(bytes.TrimSpace(boot)) + "/" + string(fields[19])}, nil
}

func (p process) alive() bool {
	now, err := identify(p.PID)
	return err == nil && now == p
}

// pidfd holds on to the process. It fails if the process has ended.
func (p process) pidfd() (int, error) {
	fd, err := unix.PidfdOpen(p.PID, 0)
	if err != nil {
		return -1, err
	}
	if !p.alive() {
		unix.Close(fd)
		return -1, os.ErrProcessDone
	}
	return fd, nil
}

// ended waits for the end of a process behind a pidfd.
func ended(fd int, timeout time.Duration) bool {
	deadline := time.Now().Add(timeout)
	for {
		left := max(0, time.Until(deadline))
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(left.Milliseconds()))
		if n > 0 {
			return true
		}
		if (err == nil || errors.Is(err, unix.EINTR)) && time.Now().Before(deadline) {
			continue
		}
		return false
	}
}

// stop asks a process to end, and ends it if it does not within the time.
func (p process) stop(grace time.Duration) error {
	fd, err := p.pidfd()
	if err != nil {
		return nil // It has ended.
	}
	defer unix.Close(fd)
	if grace > 0 {
		_ = unix.PidfdSendSignal(fd, unix.SIGTERM, nil, 0)
		if ended(fd, grace) {
			return nil
		}
	}
	_ = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
	if !ended(fd, killTimeout) {
		return fmt.Errorf("process %d does not end", p.PID)
	}
	return nil
}
