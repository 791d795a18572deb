// Package sandbox runs one test binary and names what it leaves behind: processes, mounts, files and
// data races of its child processes. The go command starts it for each package ("go test -exec"), so
// that results are still cached by the go command.
//
// It never decides what to test. Start with Run; Kernel has what only a look at the whole machine
// can find.
package sandbox

import (
	"debug/elf"
	"fmt"
	"hash/fnv"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// CPU starts the line that Run prints last: the CPU time of the test binary and all its processes. As
// it is part of the output, the go command caches it with the result.
const CPU = "sandbox: CPU time "

// Options are how a test binary is run.
type Options struct {
	// Args are the test binary and its arguments.
	Args []string
	// Seed orders the tests; if it is empty, the binary's contents do.
	Seed string
	// Suppressions is the file that lists the data races of others.
	Suppressions string
	// Grace is how long processes may take to end after the test binary.
	Grace time.Duration
	// Out is where leaks are reported.
	Out io.Writer
}

// Run runs a test binary with a temporary directory of its own, and returns its exit code, or 1 if it
// passed and left something behind.
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
	return code
}

// cpuTime returns the CPU time of the test binary and of all processes that it started.
func cpuTime() time.Duration {
	var used syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_CHILDREN, &used) // The figure is then zero.
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// shortTemp makes a temporary directory with a short name, as there are limits to the length of a
// socket's path.
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
	// The go command keeps a result if it finds the list of what the test has read where it would
	// have asked for it without -exec.
	inputs := "-test.testlogfile=" + filepath.Join(filepath.Dir(binary), "testlog.txt")
	return append([]string{binary, inputs, "-test.shuffle=" + seed}, o.Args[1:]...), nil
}

// environment is the one of the go command, with the temporary directory and with data races in a
// file, so that those of child processes are seen too.
func (o Options) environment(temp string) []string {
	race := "log_path=" + filepath.Join(temp, raceFile)
	if o.Suppressions != "" {
		race += " suppressions=" + o.Suppressions
	}
	// Of two values of a variable, the first would count.
	others := slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, "TMPDIR=") || strings.HasPrefix(v, "GORACE=")
	})
	return append(others, "TMPDIR="+temp, "GORACE="+race)
}

// seedOf derives the order of tests from the identity of their binary: another order for each change
// of the code, and the same for the same code, whose result the go command keeps.
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
	_, _ = io.Copy(h, strings.NewReader(text)) // A hash takes everything.
	return strconv.FormatUint(uint64(h.Sum32()), 10)
}
