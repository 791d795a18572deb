package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/drover-dev/drover/hack/test/events"
)

// shown is the number of slowest packages and tests in the tables.
const shown = 10

// describe returns the text about a finished package.
func describe(r events.Result) string {
	if !r.Failed {
		if strings.HasPrefix(r.Closing, "?") {
			return ""
		}
		return r.Closing + "\n"
	}
	var out strings.Builder
	out.WriteString(r.Output)
	if r.Output != "" && !strings.HasSuffix(r.Output, "\n") {
		out.WriteString("\n")
	}
	for _, name := range r.Unfinished {
		fmt.Fprintf(&out, "--- FAIL: %s (was running when the package ended)\n", name)
	}
	fmt.Fprintln(&out, r.Closing)
	return out.String()
}

// failures returns one line per failure.
func failures(results []events.Result, broken []string) string {
	var out strings.Builder
	for _, r := range results {
		if r.Failed {
			fmt.Fprintf(&out, "FAIL: %s: %s\n", r.Package, cause(r))
		}
	}
	for _, b := range broken {
		fmt.Fprintf(&out, "FAIL: %s\n", b)
	}
	return out.String()
}

// cause returns why a package failed, in one line.
func cause(r events.Result) string {
	names := slices.Concat(r.FailedTests, r.Unfinished)
	what := strings.Join(names, ", ")
	switch {
	case r.Panicked && what != "":
		what = "panic in " + what + "; other tests of the package may not have run"
	case r.Panicked:
		what = "panic outside of a test"
	case strings.Contains(r.Output, "--- LEAK: "):
		what = strings.TrimPrefix(what+", left something behind: see LEAK above", ", ")
	case what == "":
		what = "see above"
	}
	if r.Seed != "" {
		what += " (SEED=" + r.Seed + ")"
	}
	return what
}

// tables lists the slowest packages and tests, the CPU time and the cache hits.
func tables(results []events.Result, cpu time.Duration) string {
	var packages, busiest, tests []events.Test
	cached, tested := 0, 0
	for _, r := range results {
		if strings.HasPrefix(r.Closing, "?") {
			continue
		}
		tested++
		if r.Cached {
			cached++
			continue
		}
		packages = append(packages, events.Test{Package: r.Package, Took: r.Took})
		busiest = append(busiest, events.Test{Package: r.Package, Took: r.CPU})
		tests = append(tests, r.Tests...)
	}
	var out strings.Builder
	table(&out, "Slowest packages", packages)
	table(&out, "Packages with the most CPU time", busiest)
	table(&out, "Slowest tests", tests)
	fmt.Fprintf(&out, "\n%d packages, %d of them cached; CPU time %s\n", tested, cached, cpu.Round(time.Second))
	return out.String()
}

func table(out *strings.Builder, title string, rows []events.Test) {
	if len(rows) == 0 {
		return
	}
	slices.SortFunc(rows, func(a, b events.Test) int {
		return cmp.Or(cmp.Compare(b.Took, a.Took), cmp.Compare(a.Package, b.Package), cmp.Compare(a.Name, b.Name))
	})
	fmt.Fprintf(out, "\n%s\n", title)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, r := range rows[:min(shown, len(rows))] {
		fmt.Fprintf(w, "  %7.1f s\t%s\t%s\n", r.Took.Seconds(), short(r.Package), r.Name)
	}
	_ = w.Flush() // a strings.Builder never fails
}

// short returns a package's path in its module.
func short(pkg string) string {
	return strings.TrimPrefix(pkg, "github.com/drover-dev/drover/")
}
