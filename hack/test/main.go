// Command test runs all tests of Drover, or one of them many times. The Makefile calls it:
//
//	make test                              every test, and the linters beside them
//	make test SEED=42                      in the order of an earlier run
//	make deflake RUN=TestName COUNT=50     one test, again and again, on a busy machine
//
// Packages that are concurrent are tested with the race detector. End-to-end tests run beside them
// without it: they mostly wait for machines, and test the program that users get. Passing results
// are cached until the code or its inputs change, for all checkouts of a user. A failure, a panic
// and any leak fail the run; nothing is retried.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/drover-dev/drover/hack/test/sandbox"
)

const (
	// suppressions lists the data races of other projects.
	suppressions = "internal/test/races/suppressions.txt"
	// logs is the directory for lists of what tests have read.
	logs = "bin/inputs"
	// grace is how long processes may take to exit after their tests.
	grace = 10 * time.Second
)

// errFailed reports failed tests; the output has the details.
var errFailed = errors.New("tests failed")

func main() {
	args := os.Args[1:]
	if len(args) == 0 {
		args = []string{"run"}
	}
	if args[0] == "sandbox" { // it handles signals itself
		os.Exit(runSandbox(args[1:]))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := dispatch(ctx, args, os.Stdout)
	if err != nil && !errors.Is(err, errFailed) {
		fmt.Fprintln(os.Stderr, "test:", err)
	}
	if err != nil {
		os.Exit(1)
	}
}

func dispatch(ctx context.Context, args []string, out io.Writer) error {
	switch args[0] {
	case "run":
		return runAll(ctx, args[1:], out)
	case "deflake":
		return runDeflake(ctx, args[1:], out)
	case "burn":
		return burn(ctx)
	}
	return fmt.Errorf("unknown command %q: use run, deflake or sandbox", args[0])
}

// runSandbox is the -exec program of the go command.
func runSandbox(args []string) int {
	o := sandbox.Options{Grace: grace, Out: os.Stdout}
	flags := flag.NewFlagSet("sandbox", flag.ContinueOnError)
	flags.StringVar(&o.Seed, "seed", "", "order of the tests")
	flags.StringVar(&o.Suppressions, "suppressions", "", "file with the data races of others")
	flags.StringVar(&o.Log, "log", "", "directory for lists of what tests have read, one per package")
	flags.String("key", "", "keeps results apart that were made with other settings")
	if err := flags.Parse(args); err != nil || flags.NArg() == 0 {
		fmt.Fprintln(os.Stderr, "usage: test sandbox [flags] BINARY [ARG...]")
		return 2
	}
	o.Args = flags.Args()
	return sandbox.Run(o)
}

// sandboxed returns the command line of test binaries. It is part of the go command's cache key, so
// it must be the same for the same settings.
func sandboxed(root, seed string) ([]string, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding the running executable: %w", err)
	}
	file := filepath.Join(root, suppressions)
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading the list of data races: %w", err)
	}
	args := []string{self, "sandbox", "-suppressions=" + file, "-key=" + sandbox.Seed(string(data)), "-log=" + filepath.Join(root, logs)}
	if seed != "" {
		args = append(args, "-seed="+seed)
	}
	return args, nil
}
