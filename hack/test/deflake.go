package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// deflake runs one test many times.
type deflake struct {
	root, test, dir, seed string
	count, load           int
	out                   io.Writer
}

func runDeflake(ctx context.Context, args []string, out io.Writer) error {
	d := deflake{out: out}
	flags := flag.NewFlagSet("deflake", flag.ContinueOnError)
	flags.StringVar(&d.test, "run", "", "name of the test")
	flags.StringVar(&d.dir, "package", "", "directory of its package (default: where it is found)")
	flags.StringVar(&d.seed, "seed", "", "order of subtests that are shuffled (default: another one each time)")
	flags.IntVar(&d.count, "count", 50, "how often")
	flags.IntVar(&d.load, "load", runtime.NumCPU(), "how many processes keep the machine busy")
	if err := flags.Parse(args); err != nil {
		return err
	}
	var err error
	if d.root, err = os.Getwd(); err != nil {
		return err
	}
	if d.test == "" {
		return errors.New("no test to run: use RUN=TestName")
	}
	if d.dir == "" {
		if d.dir, err = findTest(d.root, d.test); err != nil {
			return err
		}
	}
	return d.run(ctx)
}

// findTest returns the directory, below root, of the package with a test.
func findTest(root, test string) (string, error) {
	name, _, _ := strings.Cut(test, "/")
	declaration := regexp.MustCompile(`(?m)^func ` + regexp.QuoteMeta(name) + `\(`)
	var found []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		data, err := os.ReadFile(path)
		dir := strings.TrimPrefix(filepath.Dir(path), root+"/")
		if err == nil && declaration.Match(data) && !slices.Contains(found, dir) {
			found = append(found, dir)
		}
		return err
	})
	switch {
	case err != nil:
		return "", fmt.Errorf("finding test %q: %w", name, err)
	case len(found) == 0:
		return "", fmt.Errorf("test %q not found", name)
	case len(found) > 1:
		return "", fmt.Errorf("several packages have a test %q: set PKG to one of %s", name, strings.Join(found, ", "))
	}
	return found[0], nil
}

func (d *deflake) run(ctx context.Context) error {
	if !filepath.IsAbs(d.dir) {
		d.dir = filepath.Join(d.root, d.dir)
	}
	temp, err := os.MkdirTemp("", "deflake-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	binary := filepath.Join(temp, "deflake.test")
	if err := d.compile(ctx, binary); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := d.keepBusy(ctx); err != nil {
		return err
	}
	return d.repeat(ctx, binary)
}

// compile builds the test binary the way "make test" does.
func (d *deflake) compile(ctx context.Context, binary string) error {
	env, args := "CGO_ENABLED=1", []string{"-race"}
	if runsProgram(d.dir) {
		env, args = "CGO_ENABLED=0", nil
	}
	args = slices.Concat([]string{"go", "test"}, compiling(), []string{"-c", "-o", binary}, args)
	cmd := command(ctx, d.dir, env, args...)
	cmd.Stdout, cmd.Stderr = d.out, d.out
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("compiling the tests in %q: %w", d.dir, err)
	}
	return nil
}

// keepBusy starts processes that compete with the test. They end with ctx.
func (d *deflake) keepBusy(ctx context.Context) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding the running executable: %w", err)
	}
	for range d.load {
		cmd := command(ctx, d.root, "GOMAXPROCS=1", self, "burn")
		if err := cmd.Start(); err != nil {
			return fmt.Errorf("keeping the machine busy: %w", err)
		}
		go func() { _ = cmd.Wait() }()
	}
	return nil
}

// repeat runs the test count times, and prints the number of failures.
func (d *deflake) repeat(ctx context.Context, binary string) error {
	failed := 0
	for i := 1; i <= d.count && ctx.Err() == nil; i++ {
		seed := d.seed
		if seed == "" {
			seed = strconv.Itoa(i)
		}
		wrapper, err := sandboxed(d.root, seed)
		if err != nil {
			return err
		}
		begun := time.Now()
		args := slices.Concat(wrapper, []string{binary, "-test.run=" + exactly(d.test), "-test.timeout=40m", "-test.paniconexit0"})
		said, err := command(ctx, d.dir, "GOTRACEBACK=all", args...).CombinedOutput()
		result := "ok  "
		if err != nil || strings.Contains(string(said), "no tests to run") {
			failed++
			result = "FAIL"
			fmt.Fprintf(d.out, "%s\n", said)
		}
		fmt.Fprintf(d.out, "%s %d/%d %s (SEED=%s, %.1f s)\n", result, i, d.count, d.test, seed, time.Since(begun).Seconds())
	}
	if ctx.Err() != nil {
		return errors.New("interrupted")
	}
	fmt.Fprintf(d.out, "make deflake: %d of %d failed, with %d busy processes beside\n", failed, d.count, d.load)
	if failed > 0 {
		return errFailed
	}
	return nil
}

// exactly returns the pattern that matches one test or subtest.
func exactly(test string) string {
	parts := strings.Split(test, "/")
	for i, p := range parts {
		parts[i] = "^" + regexp.QuoteMeta(p) + "$"
	}
	return strings.Join(parts, "/")
}
