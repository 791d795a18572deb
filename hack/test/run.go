package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/drover-dev/drover/hack/test/events"
	"github.com/drover-dev/drover/hack/test/sandbox"
)

// runsProgram reports whether a package contains end-to-end tests. The argument is an import path
// or a directory.
func runsProgram(pkg string) bool {
	return strings.HasSuffix(pkg, "/test/e2e") || strings.HasSuffix(pkg, "/test/docs")
}

// run is one run of all tests.
type run struct {
	root    string
	exec    string
	atOnce  int
	beside  string
	flags   []string
	verbose bool
	// patterns name the packages.
	patterns []string
	begun    time.Time

	mu      sync.Mutex
	out     io.Writer
	results []events.Result
	// broken lists failures outside of packages.
	broken []string
}

func runAll(ctx context.Context, args []string, out io.Writer) error {
	r, err := newRun(args, out)
	if err != nil {
		return err
	}
	packages, err := r.list(ctx)
	if err != nil {
		return err
	}
	before := sandbox.Snapshot()
	r.all(ctx, packages)
	if ctx.Err() != nil {
		return errors.New("interrupted")
	}
	r.broken = append(r.broken, kernelLeaks(ctx, before)...)
	return r.conclude()
}

func newRun(args []string, out io.Writer) (*run, error) {
	root, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	r := &run{root: root, out: out, begun: time.Now()}
	var seed, patterns string
	flags := flag.NewFlagSet("run", flag.ContinueOnError)
	flags.StringVar(&seed, "seed", "", "order of the tests (default: one that follows from each test binary)")
	flags.StringVar(&patterns, "package", "", "packages to test (default: all)")
	flags.IntVar(&r.atOnce, "p", max(1, runtime.NumCPU()/2), "how many slow packages, and tests of the program, to run at once; of the other packages, twice as many")
	flags.StringVar(&r.beside, "beside", "", "command to run beside the tests, with low priority")
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	r.flags = flags.Args()
	r.patterns = strings.Fields(cmp.Or(patterns, "./..."))
	r.verbose = slices.Contains(r.flags, "-v")
	wrapper, err := sandboxed(root, seed)
	if err != nil {
		return nil, err
	}
	r.exec = quote(wrapper)
	return r, nil
}

// quote joins arguments the way the go command splits them.
func quote(args []string) string {
	quoted := make([]string, len(args))
	for i, a := range args {
		quoted[i] = a
		if strings.ContainsAny(a, " \t") {
			quoted[i] = "'" + a + "'"
		}
	}
	return strings.Join(quoted, " ")
}

// all runs the linters and the tests concurrently.
//
//	beside (linters)     ──────────▶            low priority
//	compile for race     ────▶
//	test slow packages        ────────▶         one at once for two cores
//	test other packages               ───────▶  one at once for each core
//	test the program     ─────────────────────▶ one test at once for two cores
//
// Each of them starts API servers, and those of the program whole clusters. More at once would take
// longer in total: what renews a lease every second restarts if it can't, and tests run into their
// timeouts.
func (r *run) all(ctx context.Context, packages []string) {
	var group sync.WaitGroup
	if r.beside != "" {
		group.Go(func() { r.background(ctx, strings.Fields(r.beside)) })
	}
	whole, rest := split(packages, runsProgram)
	if len(whole) > 0 {
		group.Go(func() {
			r.test(ctx, "CGO_ENABLED=0", append([]string{"-timeout=60m", "-p=1", "-parallel=" + strconv.Itoa(r.atOnce)}, whole...)...)
		})
	}
	if len(rest) > 0 {
		group.Go(func() { r.testForRaces(ctx, rest) })
	}
	group.Wait()
}

// split returns the packages that match, and the others.
func split(packages []string, match func(string) bool) (matching, others []string) {
	for _, p := range packages {
		if match(p) {
			matching = append(matching, p)
		} else {
			others = append(others, p)
		}
	}
	return matching, others
}

// testForRaces compiles packages with the race detector and then tests them. Compiling has normal
// priority: with a lower one, the program's tests would end before the first package starts.
func (r *run) testForRaces(ctx context.Context, packages []string) {
	const env = "CGO_ENABLED=1"
	if libraries, err := r.libraries(ctx, packages); err == nil && len(libraries) > 0 {
		build := r.command(ctx, env, slices.Concat([]string{"go", "build", "-race"}, libraries)...)
		_ = build.Run() // the tests report compile errors
	}
	first, others := split(packages, isSlow)
	for _, part := range []struct {
		packages []string
		atOnce   int
	}{{first, r.atOnce}, {others, 2 * r.atOnce}} {
		if len(part.packages) > 0 {
			r.test(ctx, env, slices.Concat([]string{"-race", "-timeout=40m", "-p=" + strconv.Itoa(part.atOnce)}, part.packages)...)
		}
	}
}

// test runs "go test" with flags and packages.
func (r *run) test(ctx context.Context, env string, args ...string) {
	if ctx.Err() != nil {
		return
	}
	all := slices.Concat([]string{"go", "test"}, compiling(), []string{"-json", "-exec=" + r.exec}, r.flags, args)
	cmd := r.command(ctx, env, all...)
	cmd.Stderr = &locked{r}
	output, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		r.addFailure(fmt.Sprintf("starting go test: %v", err))
		return
	}
	failed := r.follow(output)
	// It also fails if a package failed, which is already reported.
	if err := cmd.Wait(); err != nil && !failed && ctx.Err() == nil {
		r.addFailure(fmt.Sprintf("go test: %v", err))
	}
}

// follow reports each package as it ends, and whether one has failed.
func (r *run) follow(output io.Reader) (failed bool) {
	c := events.NewCollector()
	report := func(result events.Result) {
		failed = failed || result.Failed
		r.report(result)
	}
	err := events.Read(output, func(e events.Event) {
		r.show(e)
		if result, ok := c.Add(e); ok {
			report(result)
		}
	})
	if err != nil {
		r.addFailure(fmt.Sprintf("reading what go test prints: %v", err))
	}
	for _, result := range c.Pending() {
		report(result)
	}
	return failed
}

// show prints output that belongs to no package, and with -v all of it.
func (r *run) show(e events.Event) {
	if e.Action == "output" && (e.Package == "" || r.verbose) {
		r.print(e.Output)
	}
}

func (r *run) report(result events.Result) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.results = append(r.results, result)
	fmt.Fprint(r.out, describe(result))
}

func (r *run) print(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	fmt.Fprint(r.out, text)
}

func (r *run) addFailure(what string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.broken = append(r.broken, what)
}

// background runs a command with low priority and prints its output if it fails.
func (r *run) background(ctx context.Context, args []string) {
	name := strings.Join(args, " ")
	begun := time.Now()
	said, err := r.command(ctx, "CGO_ENABLED=0", append(low(), args...)...).CombinedOutput()
	if err != nil {
		r.print(fmt.Sprintf("%s\nFAIL: %s: %v\n", said, name, err))
		r.addFailure(name)
		return
	}
	r.print(fmt.Sprintf("%s: passed in %.0f s\n", name, time.Since(begun).Seconds()))
}
