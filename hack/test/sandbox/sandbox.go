// Package sandbox runs one test binary and reports leaks: processes, mounts, files, and data races
// of its child processes. The go command starts it for each package ("go test -exec"), so that
// results are still cached by the go command.
//
// It never decides what to test. Start with Run; Kernel covers leaks that only the whole machine
// shows.
package sandbox

import (
	"debug/elf"
	"fmt"
	"hash/fnv"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// CPU is the prefix of the last line that Run prints: the CPU time of the test binary and all its
// processes. As part of the output, the go command caches it with the result.
const CPU = "sandbox: CPU time "

// Options configure a run of a test binary.
type Options struct {
	// Args are the test binary and its arguments.
	Args []string
	// Seed is the seed of the test order; by default it is derived from the binary.
	Seed string
	// Suppressions is the file that lists the data races of other projects.
	Suppressions string
	// Log is a directory for a copy of the list of what the tests have read, if they pass: LogFile.
	Log string
	// Grace is how long processes may take to exit after the test binary.
	Grace time.Duration
	// Out receives the reports of leaks.
	Out io.Writer
}

// Run runs a test binary with its own temporary directory, and returns its exit code, or 1 if it
// passed but leaked something.
func Run(o Options) int {
	temp, err := shortTemp()
	if err != nil {
		fmt.Fprintln(o.Out, "sandbox:", err)
		return 1
	}
	defer os.RemoveAll(temp)
	c, err := start(o, temp)
	if err != nil {
		fmt.Fprintln(o.Out, "sandbox:", err)
		return 1
	}
	code := c.wait()
	leaks := leaks(temp, o.Grace)
	for _, l := range leaks {
		fmt.Fprintf(o.Out, "--- LEAK: %s\n", l)
	}
	fmt.Fprintf(o.Out, "%s%s\n", CPU, cpuTime().Round(time.Millisecond))
	if code == 0 && len(leaks) > 0 {
		return 1
	}
	if code == 0 && o.Log != "" {
		o.keepLog()
	}
	return code
}

// LogFile returns the file for what the tests of the package in dir have read.
func LogFile(logs, dir string) string {
	return filepath.Join(logs, url.PathEscape(dir))
}

// keepLog copies the list of what the tests have read. Without it, the result is not cached.
func (o Options) keepLog() {
	dir, err := os.Getwd()
	if err != nil {
		return
	}
	data, err := os.ReadFile(o.inputs())
	if err == nil && os.MkdirAll(o.Log, 0o700) == nil {
		_ = os.WriteFile(LogFile(o.Log, dir), data, 0o600)
	}
}

// inputs returns the file in which the test binary lists what it reads. The go command caches a
// result if it finds the list where it expects it without -exec.
func (o Options) inputs() string {
	return filepath.Join(filepath.Dir(o.Args[0]), "testlog.txt")
}

// cpuTime returns the CPU time of the test binary and of all processes that it started.
func cpuTime() time.Duration {
	var used syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_CHILDREN, &used) // the figure is zero then
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// shortTemp creates a temporary directory with a short name, since the paths of sockets are
// limited.
func shortTemp() (string, error) {
	for i := os.Getpid(); ; i++ {
		dir := filepath.Join(os.TempDir(), "t"+strconv.FormatInt(int64(i), 36))
		err := os.Mkdir(dir, 0o700)
		if !os.IsExist(err) {
			return dir, err
		}
	}
}

// command returns the arguments of the test binary.
func (o Options) command() ([]string, error) {
	binary := o.Args[0]
	seed := o.Seed
	if seed == "" {
		var err error
		if seed, err = seedOf(binary); err != nil {
			return nil, err
		}
	}
	return append([]string{binary, "-test.testlogfile=" + o.inputs(), "-test.shuffle=" + seed}, o.Args[1:]...), nil
}

// environment returns the environment of the go command, with the temporary directory and a file
// for data races, which includes those of child processes.
func (o Options) environment(temp string) []string {
	race := "log_path=" + filepath.Join(temp, raceFile)
	if o.Suppressions != "" {
		race += " suppressions=" + o.Suppressions
	}
	// The first of two values of a variable would count.
	others := slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, "TMPDIR=") || strings.HasPrefix(v, "GORACE=")
	})
	return append(others, "TMPDIR="+temp, "GORACE="+race)
}

// seedOf derives the test order from the identity of the binary: it changes with the code, and
// stays the same for the same code, whose result the go command caches.
func seedOf(binary string) (string, error) {
	f, err := elf.Open(binary)
	if err != nil {
		return "", fmt.Errorf("reading test binary %q: %w", binary, err)
	}
	defer f.Close()
	section := f.Section(".note.go.buildid")
	if section == nil {
		return "", fmt.Errorf("test binary %q has no build ID", binary)
	}
	id, err := section.Data()
	if err != nil {
		return "", fmt.Errorf("reading the build ID of %q: %w", binary, err)
	}
	return Seed(string(id)), nil
}

// Seed turns any text into a seed that is easy to type.
func Seed(text string) string {
	h := fnv.New32a()
	_, _ = io.Copy(h, strings.NewReader(text)) // a hash never fails
	return strconv.FormatUint(uint64(h.Sum32()), 10)
}
