// Package events parses the output of "go test -json" into one result per package. It runs and
// prints nothing. Start with Collector.
package events

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"time"
)

// Event is one line of "go test -json".
type Event struct {
	Action  string
	Package string
	Test    string
	Output  string
	// Elapsed is in seconds.
	Elapsed float64
	// ImportPath names the package of a build event.
	ImportPath string
	// FailedBuild names the package that did not build.
	FailedBuild string
}

// Read calls each for every event. It forwards other lines, such as errors of the go command, as
// output without a package.
func Read(r io.Reader, each func(Event)) error {
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadString('\n')
		if line != "" {
			each(parse(line))
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func parse(line string) Event {
	var e Event
	if err := json.Unmarshal([]byte(line), &e); err != nil || e.Action == "" {
		return Event{Action: "output", Output: line}
	}
	return e
}

// Test is the result of one test, without its subtests.
type Test struct {
	Package, Name string
	Took          time.Duration
}

// Result is the outcome of a package.
type Result struct {
	Package string
	// Closing is the go command's last line about a package: "ok", "FAIL" or "no test files".
	Closing string
	Failed  bool
	Cached  bool
	Took    time.Duration
	// CPU is the CPU time of the package's tests and of all processes that they started.
	CPU   time.Duration
	Tests []Test
	// FailedTests are the failed tests, including subtests.
	FailedTests []string
	// Unfinished are the tests that were running when the package ended.
	Unfinished []string
	// Panicked reports whether a panic or a fatal error ended the package.
	Panicked bool
	// Seed is the seed of the test order.
	Seed string
	// Output is the output of failed and unfinished tests and of the package itself.
	Output string
}

// Collector collects events until a package has ended.
type Collector struct {
	packages map[string]*pending
	builds   map[string]*strings.Builder
}

// NewCollector returns an empty Collector.
func NewCollector() *Collector {
	return &Collector{packages: map[string]*pending{}, builds: map[string]*strings.Builder{}}
}

// Add adds an event and returns the result of the package that ended with it, if any.
func (c *Collector) Add(e Event) (Result, bool) {
	switch {
	case e.Action == "build-output":
		c.build(e.ImportPath).WriteString(e.Output)
	case e.Package == "" || e.Action == "build-fail":
	case e.Test == "" && ended(e.Action):
		p := c.pending(e.Package)
		delete(c.packages, e.Package)
		return p.result(e, c.builds[e.FailedBuild]), true
	default:
		c.pending(e.Package).add(e)
	}
	return Result{}, false
}

// Pending returns the results of the packages that never ended, as failures.
func (c *Collector) Pending() []Result {
	var out []Result
	for name, p := range c.packages {
		r := p.result(Event{Action: "fail", Package: name}, nil)
		r.Closing = "FAIL\t" + name + "\t[did not end]"
		out = append(out, r)
	}
	return out
}

func (c *Collector) pending(name string) *pending {
	p, ok := c.packages[name]
	if !ok {
		p = newPending(name)
		c.packages[name] = p
	}
	return p
}

func (c *Collector) build(name string) *strings.Builder {
	b, ok := c.builds[name]
	if !ok {
		b = &strings.Builder{}
		c.builds[name] = b
	}
	return b
}

func ended(action string) bool { return action == "pass" || action == "fail" || action == "skip" }
