package events

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func collect(t *testing.T, lines string) []Result {
	t.Helper()
	c := NewCollector()
	var out []Result
	err := Read(strings.NewReader(lines), func(e Event) {
		if r, ok := c.Add(e); ok {
			out = append(out, r)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return append(out, c.Pending()...)
}

func TestCollector(t *testing.T) {
	for name, c := range map[string]struct {
		lines string
		want  Result
	}{
		"a package that passes keeps its closing line, seed, CPU time and tests, and drops what tests printed": {
			lines: `{"Action":"start","Package":"p"}
{"Action":"output","Package":"p","Output":"-test.shuffle 42\n"}
{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Test":"TestA","Output":"=== RUN   TestA\n"}
{"Action":"output","Package":"p","Test":"TestA","Output":"chatter\n"}
{"Action":"pass","Package":"p","Test":"TestA","Elapsed":1.5}
{"Action":"output","Package":"p","Output":"PASS\n"}
{"Action":"output","Package":"p","Output":"sandbox: CPU time 2m3.4s\n"}
{"Action":"output","Package":"p","Output":"ok  \tp\t1.600s\n"}
{"Action":"pass","Package":"p","Elapsed":1.6}
`,
			want: Result{
				Package: "p", Closing: "ok  \tp\t1.600s", Seed: "42", Took: 1600 * time.Millisecond, CPU: 123400 * time.Millisecond,
				Tests: []Test{{"p", "TestA", 1500 * time.Millisecond}}, Output: "-test.shuffle 42\nPASS\n",
			},
		},
		"a cached package is known as such": {
			lines: `{"Action":"output","Package":"p","Output":"ok  \tp\t(cached)\n"}
{"Action":"pass","Package":"p","Elapsed":0}
`,
			want: Result{Package: "p", Closing: "ok  \tp\t(cached)", Cached: true},
		},
		"a failed test keeps its output, also that of a passing subtest": {
			lines: `{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"run","Package":"p","Test":"TestA/b"}
{"Action":"output","Package":"p","Test":"TestA/b","Output":"b said this\n"}
{"Action":"pass","Package":"p","Test":"TestA/b"}
{"Action":"output","Package":"p","Test":"TestA","Output":"--- FAIL: TestA (0.00s)\n"}
{"Action":"fail","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Output":"FAIL\tp\t0.1s\n"}
{"Action":"fail","Package":"p","Elapsed":0.1}
`,
			want: Result{
				Package: "p", Closing: "FAIL\tp\t0.1s", Failed: true, Took: 100 * time.Millisecond, FailedTests: []string{"TestA"},
				Tests: []Test{{Package: "p", Name: "TestA"}}, Output: "b said this\n--- FAIL: TestA (0.00s)\n",
			},
		},
		"a panic names the tests that were running": {
			lines: `{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Test":"TestA","Output":"panic: no\n"}
{"Action":"output","Package":"p","Output":"FAIL\tp\t0.1s\n"}
{"Action":"fail","Package":"p","Elapsed":0.1}
`,
			want: Result{
				Package: "p", Closing: "FAIL\tp\t0.1s", Failed: true, Panicked: true, Took: 100 * time.Millisecond,
				Unfinished: []string{"TestA"}, Output: "panic: no\n",
			},
		},
		"a package that does not build shows what the compiler said": {
			lines: `{"ImportPath":"p [p.test]","Action":"build-output","Output":"x.go:1: no\n"}
{"ImportPath":"p [p.test]","Action":"build-fail"}
{"Action":"output","Package":"p","Output":"FAIL\tp [build failed]\n"}
{"Action":"fail","Package":"p","FailedBuild":"p [p.test]"}
`,
			want: Result{Package: "p", Closing: "FAIL\tp [build failed]", Failed: true, Output: "x.go:1: no\n"},
		},
		"a package without an end has failed": {
			lines: `{"Action":"run","Package":"p","Test":"TestA"}
`,
			want: Result{Package: "p", Closing: "FAIL\tp\t[did not end]", Failed: true, Unfinished: []string{"TestA"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff([]Result{c.want}, collect(t, c.lines)); diff != "" {
				t.Errorf("results (-want +got):\n%s", diff)
			}
		})
	}
}

func TestReadForwardsOtherOutput(t *testing.T) {
	var got []Event
	if err := Read(strings.NewReader("go: no such module\n"), func(e Event) { got = append(got, e) }); err != nil {
		t.Fatal(err)
	}
	if want := []Event{{Action: "output", Output: "go: no such module\n"}}; !cmp.Equal(want, got) {
		t.Errorf("got %v, want %v", got, want)
	}
}
