package main

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-dev/drover/hack/test/events"
)

func TestDescribe(t *testing.T) {
	for name, c := range map[string]struct {
		result events.Result
		want   string
	}{
		"a package that passed is one line": {
			events.Result{Closing: "ok  \tp\t1s", Output: "PASS\n"}, "ok  \tp\t1s\n",
		},
		"a package without tests is not shown": {events.Result{Closing: "?   \tp\t[no test files]"}, ""},
		"a package that failed shows its output and what was running": {
			events.Result{Failed: true, Closing: "FAIL\tp\t1s", Output: "panic: no", Unfinished: []string{"TestA"}},
			"panic: no\n--- FAIL: TestA (was running when the package ended)\nFAIL\tp\t1s\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, describe(c.result)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestFailuresNameTheirCause(t *testing.T) {
	results := []events.Result{
		{Package: "fine"},
		{Package: "one", Failed: true, FailedTests: []string{"TestA", "TestA/b"}, Seed: "7"},
		{Package: "two", Failed: true, Panicked: true, Unfinished: []string{"TestC"}},
		{Package: "three", Failed: true, Panicked: true},
		{Package: "four", Failed: true, Output: "PASS\n--- LEAK: process 1: sleep\n"},
		{Package: "five", Failed: true},
	}
	want := `FAIL: one: TestA, TestA/b (SEED=7)
FAIL: two: panic in TestC; other tests of the package may not have run
FAIL: three: panic outside of a test
FAIL: four: left something behind: see LEAK above
FAIL: five: see above
FAIL: left behind: link drv01234567
`
	if diff := cmp.Diff(want, failures(results, []string{"left behind: link drv01234567"})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := failures(results[:1], nil); got != "" {
		t.Errorf("got %q, want nothing", got)
	}
}

func TestTablesListTenSlowestTestsAndCacheHits(t *testing.T) {
	results := []events.Result{{Package: "kept", Closing: "ok  \tkept\t(cached)", Cached: true, Took: time.Hour}, {Closing: "?   \tx"}}
	for i := range 12 {
		r := events.Result{Package: "p" + string(rune('a'+i)), Closing: "ok  \t", Took: time.Duration(i) * time.Second, CPU: time.Duration(20-i) * time.Second}
		r.Tests = []events.Test{{Package: r.Package, Name: "TestX", Took: r.Took}}
		results = append(results, r)
	}
	got := tables(results, 90*time.Second)
	for _, want := range []string{
		"Slowest packages\n     11.0 s  pl", "Slowest tests\n     11.0 s  pl  TestX",
		"Packages with the most CPU time\n     20.0 s  pa", "13 packages, 1 of them cached; CPU time 1m30s\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in:\n%s", want, got)
		}
	}
	for _, not := range []string{"1.0 s  pb", "kept"} {
		if strings.Contains(got, not) {
			t.Errorf("%q is not among the ten slowest:\n%s", not, got)
		}
	}
}

func TestEnqueueSortsPackagesOfAllSuitesTheSlowestFirst(t *testing.T) {
	all := slow()
	race, whole := suite{env: "race"}, suite{env: "plain"}
	queue := make(chan suite, 8)
	enqueue(queue, race.with([]string{"m/quick", "m/" + all[3], "m/" + all[1]}), whole.with([]string{"m/" + all[2]}))
	close(queue)
	var got []string
	for s := range queue {
		got = append(got, s.env+" "+strings.Join(s.packages, " "))
	}
	want := []string{"race m/" + all[1], "plain m/" + all[2], "race m/" + all[3], "race m/quick"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestSlowPackagesExist(t *testing.T) {
	if len(slow()) == 0 {
		t.Fatal("slow.txt lists nothing")
	}
	for _, s := range slow() {
		if strings.ContainsAny(s, " #\t") {
			t.Errorf("%q is no package", s)
		}
	}
}

func TestIsSlow(t *testing.T) {
	for pkg, want := range map[string]bool{"example.test/m/" + slow()[0]: true, "example.test/m/x" + slow()[0]: false, "example.test/m": false} {
		if got := isSlow(pkg); got != want {
			t.Errorf("isSlow(%s) = %t", pkg, got)
		}
	}
}

func TestQuote(t *testing.T) {
	if got, want := quote([]string{"/a b/test", "sandbox"}), "'/a b/test' sandbox"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
