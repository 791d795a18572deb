package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-dev/drover/hack/test/events"
)

func TestDispatchRejectsUnknownCommands(t *testing.T) {
	if err := dispatch(t.Context(), []string{"jump"}, &bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), `unknown command "jump"`) {
		t.Errorf("got error %v, want one that contains %q", err, `unknown command "jump"`)
	}
	if err := dispatch(t.Context(), []string{"deflake"}, &bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), "RUN=TestName") {
		t.Errorf("error %v without a test", err)
	}
}

func TestBurnEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := burn(ctx); err != nil {
		t.Error(err)
	}
}

func TestFollowReportsPackagesThatNeverEnd(t *testing.T) {
	for name, tt := range map[string]struct {
		output string
		failed bool
		want   string
	}{
		"nothing":                     {"", false, ""},
		"a package that passes":       {`{"Action":"output","Package":"p","Output":"ok  \tp\t0.1s\n"}` + "\n" + `{"Action":"pass","Package":"p"}`, false, "ok  \tp\t0.1s\n"},
		"a package that fails":        {`{"Action":"output","Package":"p","Output":"FAIL\tp\t0.1s\n"}` + "\n" + `{"Action":"fail","Package":"p"}`, true, "FAIL\tp\t0.1s\n"},
		"a package that never ends":   {`{"Action":"run","Package":"p","Test":"TestA"}`, true, "--- FAIL: TestA (was running when the package ended)\nFAIL\tp\t[did not end]\n"},
		"an error of the go command":  {"go: no such tool\n", false, "go: no such tool\n"},
		"a package without any tests": {`{"Action":"output","Package":"p","Output":"?   \tp\t[no test files]\n"}` + "\n" + `{"Action":"skip","Package":"p"}`, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			r := &run{out: &out}
			if failed := r.follow(strings.NewReader(tt.output)); failed != tt.failed {
				t.Errorf("failed: %t", failed)
			}
			if diff := cmp.Diff(tt.want, out.String()); diff != "" {
				t.Errorf("output (-want +got):\n%s", diff)
			}
		})
	}
}

func TestConcludeFailsWithAnyFailure(t *testing.T) {
	for name, tt := range map[string]struct {
		results []events.Result
		broken  []string
		want    string
	}{
		"all passed":       {[]events.Result{{Package: "p", Closing: "ok"}}, nil, "make test: passed"},
		"a failed package": {[]events.Result{{Package: "p", Closing: "FAIL", Failed: true}}, nil, "make test: FAILED"},
		"something else":   {nil, []string{"left behind: link drv00000000"}, "FAIL: left behind: link drv00000000"},
	} {
		var out bytes.Buffer
		r := &run{out: &out, results: tt.results, broken: tt.broken, begun: time.Now()}
		err := r.conclude()
		if passed := strings.Contains(tt.want, "passed"); (err == nil) != passed || err != nil && !errors.Is(err, errFailed) || !strings.Contains(out.String(), tt.want) {
			t.Errorf("%s: error %v, output:\n%s", name, err, out.String())
		}
	}
}

func TestShowPrintsWhatBelongsToNoPackage(t *testing.T) {
	for name, tt := range map[string]struct {
		event   events.Event
		verbose bool
		want    string
	}{
		"of the go command":       {events.Event{Action: "output", Output: "x"}, false, "x"},
		"of a package":            {events.Event{Action: "output", Package: "p", Output: "x"}, false, ""},
		"of a package, all of it": {events.Event{Action: "output", Package: "p", Output: "x"}, true, "x"},
		"no output":               {events.Event{Action: "run", Output: "x"}, true, ""},
	} {
		var out bytes.Buffer
		r := &run{out: &out, verbose: tt.verbose}
		r.show(tt.event)
		if out.String() != tt.want {
			t.Errorf("%s: got %q, want %q", name, out.String(), tt.want)
		}
	}
}

func TestCommandsHaveTheirEnvironment(t *testing.T) {
	dir := t.TempDir()
	out, err := command(t.Context(), dir, "DROVER_TEST_VALUE=7", "sh", "-c", "pwd; echo $DROVER_TEST_VALUE").Output()
	if err != nil || string(out) != dir+"\n7\n" {
		t.Errorf("output %q, error %v", out, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cmd := command(ctx, dir, "A=1", "sleep", "3600")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := cmd.Wait(); err == nil {
		t.Error("the command outlives its context")
	}
}

func TestSandboxNeedsTheListOfRaces(t *testing.T) {
	if _, err := sandboxed(t.TempDir(), ""); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got error %v, want %v", err, os.ErrNotExist)
	}
	args, err := sandboxed("../..", "42")
	if err != nil || args[1] != "sandbox" || args[len(args)-1] != "-seed=42" {
		t.Errorf("arguments %v, error %v", args, err)
	}
	again, err := sandboxed("../..", "42")
	if err != nil || !cmp.Equal(args, again) {
		t.Errorf("the same settings have other arguments: %v", again)
	}
}
