package events

import (
	"slices"
	"strings"
	"time"

	"github.com/drover-dev/drover/hack/test/sandbox"
)

// pending is a package that has not ended yet.
type pending struct {
	soFar Result
	// running are the running tests in start order.
	running []string
	// chunks hold the output by top-level test, in the order of first output; the package's own
	// output has no test.
	chunks []*chunk
}

type chunk struct {
	test string
	text strings.Builder
}

func newPending(name string) *pending { return &pending{soFar: Result{Package: name}} }

func (p *pending) add(e Event) {
	switch {
	case e.Action == "run":
		p.running = append(p.running, e.Test)
	case e.Action == "output":
		p.output(e)
	case e.Test != "" && ended(e.Action):
		p.endTest(e)
	}
}

func (p *pending) output(e Event) {
	line := e.Output
	switch {
	case strings.HasPrefix(line, "=== "): // progress of the test binary
		return
	case closing(line):
		p.soFar.Closing = strings.TrimRight(line, "\n")
		p.soFar.Cached = strings.Contains(line, "\t(cached)")
		return
	case strings.HasPrefix(line, sandbox.CPU):
		// Without a figure, the package is only missing from a table.
		p.soFar.CPU, _ = time.ParseDuration(strings.TrimSpace(strings.TrimPrefix(line, sandbox.CPU)))
		return
	case strings.HasPrefix(line, "-test.shuffle "):
		p.soFar.Seed = strings.TrimSpace(strings.TrimPrefix(line, "-test.shuffle "))
	case strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: "):
		p.soFar.Panicked = true
	}
	p.chunk(top(e.Test)).text.WriteString(line)
}

// closing reports whether a line is the last one of a package.
func closing(line string) bool {
	return strings.HasPrefix(line, "ok  \t") || strings.HasPrefix(line, "FAIL\t") || strings.HasPrefix(line, "?   \t")
}

func (p *pending) endTest(e Event) {
	p.running = slices.DeleteFunc(p.running, func(name string) bool { return name == e.Test })
	isTop := e.Test == top(e.Test)
	switch {
	case e.Action == "fail":
		p.soFar.FailedTests = append(p.soFar.FailedTests, e.Test)
	case isTop:
		// The output of a passing test is dropped.
		p.chunks = slices.DeleteFunc(p.chunks, func(c *chunk) bool { return c.test == e.Test })
	}
	if isTop {
		p.soFar.Tests = append(p.soFar.Tests, Test{Package: e.Package, Name: e.Test, Took: seconds(e.Elapsed)})
	}
}

func (p *pending) chunk(test string) *chunk {
	for _, c := range p.chunks {
		if c.test == test {
			return c
		}
	}
	c := &chunk{test: test}
	p.chunks = append(p.chunks, c)
	return c
}

func (p *pending) result(e Event, build *strings.Builder) Result {
	r := p.soFar
	r.Failed = e.Action == "fail"
	r.Took = seconds(e.Elapsed)
	r.Unfinished = append([]string(nil), p.running...)
	if r.Closing == "" && r.Failed {
		r.Closing = "FAIL\t" + r.Package
	}
	var out strings.Builder
	if build != nil {
		out.WriteString(build.String())
	}
	for _, c := range p.chunks {
		out.WriteString(c.text.String())
	}
	r.Output = out.String()
	return r
}

// top returns the top-level test of a subtest.
func top(test string) string {
	name, _, _ := strings.Cut(test, "/")
	return name
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
