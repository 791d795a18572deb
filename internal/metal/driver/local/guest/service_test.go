package guest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestUnmetConditions(t *testing.T) {
	dir := t.TempDir()
	missing := filepath.Join(dir, "missing")
	for _, tt := range []struct {
		conditions []string
		want       string
	}{
		{nil, ""},
		{[]string{dir}, ""},
		{[]string{missing}, missing},
		{[]string{"!" + missing}, ""},
		{[]string{"!" + dir}, dir},
		{[]string{dir, "!" + dir, missing}, dir},
	} {
		if got := (&unit{conditions: tt.conditions}).unmet(); got != tt.want {
			t.Errorf("conditions %v: %q is unmet, want %q", tt.conditions, got, tt.want)
		}
	}
}

func TestSettle(t *testing.T) {
	for _, tt := range []struct {
		ok, remain  bool
		state, last string
	}{
		{ok: false, state: stateFailed, last: "broke"},
		{ok: false, remain: true, state: stateFailed, last: "broke"},
		{ok: true, state: stateInactive, last: "done"},
		{ok: true, remain: true, state: stateActive, last: "done"},
	} {
		svc := &service{unit: &unit{remain: tt.remain}, state: stateActivating, pid: 7, stop: make(chan struct{}), done: make(chan struct{})}
		svc.settle(tt.ok, errors.New("broke"))
		if svc.state != tt.state || svc.last != tt.last || svc.pid != 0 || svc.since.IsZero() {
			t.Errorf("exit 0: %t, remain after exit: %t: got %+v", tt.ok, tt.remain, svc)
		}
		if !svc.alive() {
			t.Error("a service is dead before its supervisor ends")
		}
		close(svc.done)
		if svc.alive() != (tt.ok && tt.remain) {
			t.Errorf("exit 0: %t, remain after exit: %t: got alive %t", tt.ok, tt.remain, svc.alive())
		}
	}
}

func TestSeconds(t *testing.T) {
	for value, want := range map[string]time.Duration{
		"10": 10 * time.Second, "0": 0, "0.5": 500 * time.Millisecond, "10s": 10 * time.Second, "500ms": 500 * time.Millisecond,
		"1min": time.Minute, "1min 30s": 90 * time.Second, "2h": 2 * time.Hour, "": time.Second, "soon": time.Second,
	} {
		if got := seconds(value); got != want {
			t.Errorf("RestartSec=%s is %s, want %s", value, got, want)
		}
	}
}

func TestUnitName(t *testing.T) {
	for name, want := range map[string]string{
		"kubelet": "kubelet.service", "kubelet.service": "kubelet.service", "cloud-init.target": "cloud-init.target",
		"/etc/systemd/system/a.service": "a.service", "dir.d/b": "b.service",
	} {
		if got := unitName(name); got != want {
			t.Errorf("%q is unit %q, want %q", name, got, want)
		}
	}
}

func TestSplitWords(t *testing.T) {
	for line, want := range map[string][]string{
		"":                   nil,
		" \t ":               nil,
		"a b\tc":             {"a", "b", "c"},
		`a "b c" 'd e'`:      {"a", "b c", "d e"},
		`a"b"'c'd`:           {"abcd"},
		`""`:                 {""},
		`a\ b \"c\"`:         {"a b", `"c"`},
		`'a\b' "a\"b"`:       {`a\b`, `a"b`},
		`"never closed`:      {"never closed"},
		`trailing\`:          {"trailing"},
		"größe = 'naïve  ☃'": {"größe", "=", "naïve  ☃"},
	} {
		if diff := cmp.Diff(want, splitWords(line)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", line, diff)
		}
	}
}

func TestUnquote(t *testing.T) {
	for value, want := range map[string]string{
		"": "", "a": "a", "\t\"a b\"": "a b", `'a'`: "a", `"a'`: `"a'`, `"`: `"`, `""`: "", `a"b"`: `a"b"`,
	} {
		if got := unquote(value); got != want {
			t.Errorf("%s is %q, want %q", value, got, want)
		}
	}
}

func TestExpandBraces(t *testing.T) {
	get := func(name string) string { return map[string]string{"A": "1 2", "EMPTY": ""}[name] }
	for word, want := range map[string]string{
		"": "", "x": "x", "${A}": "1 2", "a${A}b${A}c": "a1 2b1 2c", "${EMPTY}${MISSING}": "", "${A": "${A", "$$A": "$A", "100$": "100$", "${}": "",
	} {
		if got := expandBraces(word, get); got != want {
			t.Errorf("%s becomes %q, want %q", word, got, want)
		}
	}
}

func TestEnvironmentFiles(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "env")
	if err := os.WriteFile(file, []byte("# A=0\n; B=0\n\nA=\"1 2\"\nno equals sign\n C = 'x' \nEMPTY=\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	u := &unit{env: []string{"A=unit"}, envFiles: []string{"-" + filepath.Join(dir, "missing"), file}}
	env, err := u.environment()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(append(Environment(), "A=unit", "A=1 2", "C =x", "EMPTY="), env); diff != "" {
		t.Errorf("environment (-want +got):\n%s", diff)
	}
	if words, _ := argv("run ${A}", env); words[1] != "1 2" {
		t.Errorf("a file does not win over the unit: %v", words)
	}
	u.envFiles = []string{filepath.Join(dir, "missing")}
	if _, err := u.environment(); !os.IsNotExist(err) {
		t.Errorf("error %v for a file that is missing and not optional", err)
	}
}

func TestCredential(t *testing.T) {
	for _, name := range []string{"", "root"} {
		if c, err := credential(name); c != nil || err != nil {
			t.Errorf("user %q: %v, error %v", name, c, err)
		}
	}
	if _, err := credential("no-such-user"); err == nil {
		t.Error("a user that does not exist is accepted")
	}
}

func TestDescribe(t *testing.T) {
	for want, got := range map[string]string{
		"exit code 0":       describe(0, nil),
		"exit code 3":       describe(3<<8, nil),
		"ended by killed":   describe(syscall.WaitStatus(syscall.SIGKILL), nil),
		"no such directory": describe(3<<8, errors.New("no such directory")),
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	cause := errors.New("cause")
	if err := error(&exitError{argv: []string{"a", "b"}, err: cause}); !errors.Is(err, cause) || err.Error() != "a b: cause" {
		t.Errorf("got error %v, want one that wraps and ends with %v", err, cause)
	}
}

func FuzzUnit(f *testing.F) {
	f.Add("[Unit]\nDescription=A\n[Service]\nExecStart=/bin/x $A \\\n ${B}\nEnvironment=\"A=1 2\"\nRestartSec=1min 30s\n")
	f.Add("[Service\n=\n[]\nExecStart=-'\nRestartSec=-1\n")
	f.Add("\\\n\\")
	f.Fuzz(func(t *testing.T, text string) {
		u := &unit{}
		if u.parse(text) != nil {
			return
		}
		for _, line := range append(u.pre, u.start...) {
			words, _ := argv(line, u.env)
			if len(words) > 0 && strings.TrimSpace(line) == "" {
				t.Errorf("line %q becomes %q", line, words)
			}
		}
	})
}

// inChild is set in a process that collects all of its children, as the first process of a machine
// does. It would take children from the other tests.
const inChild = "DROVER_TEST_COLLECTS_CHILDREN"

// TestCommandsOfAUnit runs units with real processes.
func TestCommandsOfAUnit(t *testing.T) {
	if os.Getenv(inChild) == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^TestCommandsOfAUnit$", "-test.timeout=2m")
		cmd.Env = append(os.Environ(), inChild+"=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	collector := newProcesses() // only one can collect the children of a process
	for name, tt := range map[string]struct {
		unit    unit
		ok      bool
		err     string
		started error
		output  string
	}{
		"a oneshot runs its commands in order": {
			unit: unit{kind: "oneshot", pre: []string{"echo 1"}, start: []string{"echo 2", `sh -c "echo 3"`}}, ok: true, err: "ended", started: errors.New("ended"), output: "1\n2\n3\n",
		},
		"and ends at the first failure": {
			unit: unit{kind: "oneshot", start: []string{"sh -c 'echo 1; exit 7'", "echo 2"}}, err: "sh: exit code 7", started: errors.New("sh: exit code 7"), output: "1\n",
		},
		"unless it may fail": {
			unit: unit{kind: "oneshot", start: []string{"-sh -c 'exit 7'", "echo 2"}}, ok: true, err: "ended", started: errors.New("ended"), output: "2\n",
		},
		"a service has started as soon as it runs": {
			unit: unit{kind: "simple", start: []string{"sh -c 'while [ ! -e $STARTED ]; do sleep 0.01; done; echo $GREETING'"}, env: []string{"GREETING=hello"}},
			ok:   true, err: "ended", output: "hello\n",
		},
		"a program that does not exist": {
			unit: unit{kind: "simple", start: []string{"no-such-program --flag"}}, err: "no-such-program --flag: finding no-such-program: file does not exist",
			started: errors.New("no-such-program --flag: finding no-such-program: file does not exist"),
		},
		"a signal":   {unit: unit{kind: "oneshot", start: []string{"sh -c 'kill -9 $$$$'"}}, err: "sh: ended by killed", started: errors.New("sh: ended by killed")},
		"no command": {unit: unit{kind: "oneshot", start: []string{""}}, ok: true, err: "ended", started: errors.New("ended")},
	} {
		t.Run(name, func(t *testing.T) {
			flag := filepath.Join(t.TempDir(), "started") // which the service waits for
			log, err := os.Create(filepath.Join(t.TempDir(), "log"))
			if err != nil {
				t.Fatal(err)
			}
			defer log.Close()
			svc := &service{unit: &tt.unit, stop: make(chan struct{}), done: make(chan struct{})}
			started := make(chan error, 1)
			s := newServices(collector, t.Logf)
			r := &run{services: s, svc: svc, command: command{env: append(append(baseEnv(), "STARTED="+flag), tt.unit.env...), out: log}, report: firstOutcome(started)}
			ended := make(chan struct{})
			var ok bool
			go func() {
				defer close(ended)
				ok, err = r.lines(append(tt.unit.pre, tt.unit.start...))
				r.report(err)
			}()
			if got := <-started; fmt.Sprint(got) != fmt.Sprint(tt.started) {
				t.Errorf("the start reports %v, want %v", got, tt.started)
			}
			if err := os.WriteFile(flag, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			<-ended
			if ok != tt.ok || err.Error() != tt.err {
				t.Errorf("ended well: %t, error %v; want %t, %s", ok, err, tt.ok, tt.err)
			}
			if data, err := os.ReadFile(log.Name()); err != nil || string(data) != tt.output {
				t.Errorf("output %q (error %v), want %q", data, err, tt.output)
			}
		})
	}
}
