package plane

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// Process names one process for good: a number is used again by the kernel
// after a while or a reboot, a number with its start time and boot is not.
type Process struct {
	PID   int    `json:"pid"`
	Start string `json:"start,omitempty"`
}

// identify describes a living process; the zero Process stands for none.
func identify(pid int) Process {
	start, err := startTime(pid)
	if err != nil {
		return Process{}
	}
	return Process{PID: pid, Start: start}
}

// alive tells whether any thread of the process still runs. A process that was
// killed holds its ports and locks until the last one has ended, long after
// /proc shows its first thread as a zombie.
func (p Process) alive() bool {
	return p.PID > 0 && p == identify(p.PID) && !p.wait(0)
}

// kill ends a process at once and waits until it is gone.
func (p Process) kill(timeout time.Duration) error {
	deadline := time.Now().Add(timeout)
	for p.alive() {
		if time.Now().After(deadline) {
			return fmt.Errorf("process %d of an earlier start does not end: end it and try again", p.PID)
		}
		_ = unix.Kill(p.PID, unix.SIGKILL)
		p.wait(20 * time.Millisecond)
	}
	return nil
}

// wait tells whether the process has ended, and gives it time to.
func (p Process) wait(timeout time.Duration) (ended bool) {
	fd, err := unix.PidfdOpen(p.PID, 0)
	if err != nil {
		return true
	}
	defer unix.Close(fd)
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(timeout.Milliseconds()))
	return n > 0 && err == nil
}

// startTime joins the boot id and the 22nd field of /proc/PID/stat. The second
// field is the name in parentheses and may hold anything, so fields are
// counted from its end.
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

// MemoryBytes is the memory that the process holds now.
func (p Process) MemoryBytes() int64 { return memoryBytes(p.PID) }

// memoryBytes counts the pages that a process holds, those that it shares with
// others by its share, so that the figures of several processes of the same
// program add up to what they really use. It is 0 if the process is gone.
func memoryBytes(pid int) int64 {
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

// leftoverTimeout is long for a process that has been killed: a large one
// needs a moment to give its memory back.
const leftoverTimeout = 10 * time.Second

// endLeftovers kills children that outlived their supervisor. The kernel does
// that by itself, a moment after the supervisor's end at the latest.
func (h Home) endLeftovers() error {
	last, err := h.readState()
	if err != nil {
		return nil //nolint:nilerr // without a readable state there is nobody to look for
	}
	for _, process := range last.Children {
		if err := process.kill(leftoverTimeout); err != nil {
			return err
		}
	}
	return nil
}
