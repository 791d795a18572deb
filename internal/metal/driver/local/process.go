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

// process identifies a process permanently: the kernel reuses process IDs, but not together with
// start time and boot ID.
type process struct {
	PID   int    `json:"pid"`
	Start string `json:"start"`
}

// identify returns the identity of a running process.
func identify(pid int) (process, error) {
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return process{}, err
	}
	// The name before the last parenthesis may contain anything.
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

// pidfd opens a pidfd of the process. It fails if the process has exited.
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

// ended waits until the process of a pidfd exits.
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

// stop terminates a process, and kills it after the timeout.
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
		return fmt.Errorf("process %d does not exit", p.PID)
	}
	return nil
}
