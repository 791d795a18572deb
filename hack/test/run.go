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
	"github.com/drover-dev/drover/hack/test/passed"
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
	// runner identifies this program and its settings.
	runner string
	// store has the results of all checkouts. It is nil if everything is to be tested, or if Git
	// can't tell whether somebody changes files of the checkout during the run.
	store    *passed.Store
	checkout string

	mu      sync.Mutex
	out     io.Writer
	results []events.Result
	// keys identify the packages that are being tested.
	keys map[string]string
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
	flags.IntVar(&r.atOnce, "p", max(1, runtime.NumCPU()/2), "how many slow packages, other packages, and tests of the program, to run at once")
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
	err = r.open(seed)
	return r, err
}

// open opens the cache of results, unless flags or an order ask for a run of their own.
func (r *run) open(seed string) error {
	if r.checkout = checkout(r.root); seed != "" || len(r.flags) > 0 || r.checkout == "" {
		return nil
	}
	var err error
	if r.runner, err = runner(r.root); err == nil {
		r.store, err = passed.Open(r.root)
	}
	return err
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

// suite is a set of packages that are tested in the same way.
type suite struct {
	env string
	// prefix starts the command, as nice does.
	prefix []string
	// compile are flags of the compiler, flags those of the tests.
	compile, flags []string
	packages       []string
}

// all runs the linters and the tests concurrently.
//
//	beside (linters)     ──────────▶            low priority
//	compile for race     ────▶
//	test slow packages   ─────────────────────▶ two at once for two cores, the slowest first
//	test other packages       ────────────────▶ one at once for two cores, lower priority
//
// Slow packages start API servers, and those with end-to-end tests whole clusters, one test at
// once. More would take longer in total: what renews a lease every second restarts if it can't, and
// tests run into their timeouts. Each slow package runs on its own, so that the next one starts as
// soon as any of them ends.
func (r *run) all(ctx context.Context, packages []string) {
	var group sync.WaitGroup
	if r.beside != "" {
		group.Go(func() { r.background(ctx, strings.Fields(r.beside)) })
	}
	program, rest := split(packages, runsProgram)
	concurrent, sequential := split(rest, r.concurrent)
	whole := suite{env: plain, flags: r.limits("60m", "-p=1", "-parallel="), packages: program}
	race := suite{env: "CGO_ENABLED=1", compile: []string{"-race"}, flags: r.limits("40m", "-p="), packages: concurrent}
	queue := make(chan suite, len(packages))
	for range 2 * r.atOnce {
		group.Go(func() {
			for s := range queue {
				r.run(ctx, s)
			}
		})
	}
	group.Go(func() {
		defer close(queue)
		whole.packages = r.untested(ctx, whole)
		first, others := split(whole.packages, isSlowest)
		enqueue(queue, whole.with(first))
		// Compiling has normal priority: with a lower one, the program's tests would end before the
		// next package starts.
		race.packages = r.untested(ctx, race)
		slow, quick := split(race.packages, isSlow)
		enqueue(queue, race.with(slow), whole.with(others))
		group.Go(func() {
			r.test(ctx, suite{env: plain, prefix: lower(), flags: r.limits("40m", "-p="), packages: sequential})
			quick := race.with(quick)
			quick.prefix = lower()
			r.run(ctx, quick)
		})
	})
	group.Wait()
}

// with returns the same suite of other packages.
func (s suite) with(packages []string) suite {
	s.packages = packages
	return s
}

// enqueue adds each package of some suites on its own, the slowest of all first.
func enqueue(queue chan<- suite, suites ...suite) {
	var each []suite
	for _, s := range suites {
		for _, p := range s.packages {
			each = append(each, s.with([]string{p}))
		}
	}
	slices.SortStableFunc(each, func(a, b suite) int { return cmp.Compare(rank(a.packages[0]), rank(b.packages[0])) })
	for _, s := range each {
		queue <- s
	}
}

// plain is the environment of tests without the race detector.
const plain = "CGO_ENABLED=0"

// limits returns flags for the timeout of a package, and others of which the last one says how many
// packages or tests run at once.
func (r *run) limits(timeout string, flags ...string) []string {
	flags[len(flags)-1] += strconv.Itoa(r.atOnce)
	return append(flags, "-timeout="+timeout)
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

// test runs the tests of a suite that have not passed before.
func (r *run) test(ctx context.Context, s suite) {
	if len(s.packages) > 0 {
		s.packages = r.untested(ctx, s)
		r.run(ctx, s)
	}
}

// run runs "go test" for a suite.
func (r *run) run(ctx context.Context, s suite) {
	if ctx.Err() != nil || len(s.packages) == 0 {
		return
	}
	all := slices.Concat(s.prefix, []string{"go", "test"}, compiling(), []string{"-json", "-exec=" + r.exec}, r.flags, s.compile, s.flags, s.packages)
	cmd := r.command(ctx, s.env, all...)
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
		r.save(result)
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
