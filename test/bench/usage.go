package main

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// clockTick is the unit of CPU time in /proc, fixed on Linux.
const clockTick = 10 * time.Millisecond

// usage is the memory and CPU time of one process.
type usage struct {
	resident     int64
	proportional int64
	cpu          time.Duration
}

func usageOf(pid int) (usage, error) {
	var u usage
	rollup, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		return u, err
	}
	for line := range strings.Lines(string(rollup)) {
		fields := strings.Fields(line)
		if len(fields) != 3 {
			continue
		}
		kilobytes, err := strconv.ParseInt(fields[1], 10, 64)
		if err != nil {
			continue
		}
		switch fields[0] {
		case "Rss:":
			u.resident = kilobytes << 10
		case "Pss:":
			u.proportional = kilobytes << 10
		}
	}
	u.cpu, err = cpuTime(pid)
	return u, err
}

// cpuTime adds the 14th and 15th field of /proc/PID/stat, counted from the end of the second, which
// may contain anything.
func cpuTime(pid int) (time.Duration, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 13 {
		return 0, fmt.Errorf("/proc/%d/stat has %d fields", pid, len(fields))
	}
	user, err := strconv.ParseInt(string(fields[11]), 10, 64)
	if err != nil {
		return 0, err
	}
	system, err := strconv.ParseInt(string(fields[12]), 10, 64)
	return time.Duration(user+system) * clockTick, err
}
