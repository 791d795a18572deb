package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// raceFile is the prefix of the race detector's files.
const raceFile = "race"

// children returns the processes that have a parent.
func children(parent int) []int {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	var out []int
	for _, path := range stats {
		data, err := os.ReadFile(path)
		if err != nil {
			continue // it has exited
		}
		if pid, ppid, ok := parseStat(string(data)); ok && ppid == parent {
			out = append(out, pid)
		}
	}
	return out
}

// parseStat parses "pid (name) state ppid ...", where the name may contain anything.
func parseStat(line string) (pid, ppid int, ok bool) {
	opening, closing := strings.IndexByte(line, '('), strings.LastIndexByte(line, ')')
	if opening < 1 || closing < opening {
		return 0, 0, false
	}
	rest := strings.Fields(line[closing+1:])
	if len(rest) < 2 {
		return 0, 0, false
	}
	pid, err := strconv.Atoi(strings.TrimSpace(line[:opening]))
	if err != nil {
		return 0, 0, false
	}
	ppid, err = strconv.Atoi(rest[1])
	return pid, ppid, err == nil
}

// unmount detaches and names the mounts below a directory.
func unmount(dir string) []string {
	data, _ := os.ReadFile("/proc/self/mountinfo")
	var out []string
	for _, point := range slices.Backward(mountsBelow(string(data), dir)) {
		out = append(out, "mount "+point)
		_ = unix.Unmount(point, unix.MNT_DETACH)
	}
	return out
}

// mountsBelow returns the mount points below a directory in mount order.
func mountsBelow(mountinfo, dir string) []string {
	const pointField = 4
	var out []string
	for line := range strings.Lines(mountinfo) {
		if f := strings.Fields(line); len(f) > pointField && strings.HasPrefix(f[pointField], dir+"/") {
			out = append(out, f[pointField])
		}
	}
	return out
}

// races returns the reports of the race detector, and removes them.
func races(dir string) []string {
	files, _ := filepath.Glob(filepath.Join(dir, raceFile+".*"))
	var out []string
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err == nil {
			out = append(out, fmt.Sprintf("data race in process %s\n%s", strings.TrimPrefix(filepath.Ext(file), "."), data))
		}
		_ = os.Remove(file)
	}
	return out
}

// leftovers returns the files in a temporary directory.
func leftovers(dir string) []string {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return []string{fmt.Sprintf("temporary directory %q can't be read: %v", dir, err)}
	}
	var out []string
	for _, e := range entries {
		out = append(out, "file "+filepath.Join(dir, e.Name()))
	}
	return out
}
