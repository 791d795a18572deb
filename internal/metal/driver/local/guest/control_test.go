package guest

import (
	"encoding/json"
	"errors"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// supervised returns a machine with units in these states, none of which has a process.
func supervised(states map[string]string) *machine {
	m := &machine{services: newServices(nil, func(string, ...any) {}), off: make(chan string, 1)}
	for name, state := range states {
		svc := &service{unit: &unit{name: name}, state: state, stop: make(chan struct{}), done: make(chan struct{})}
		close(svc.done)
		m.services.running[name] = svc
	}
	return m
}

func TestControl(t *testing.T) {
	m := supervised(map[string]string{"b.service": stateFailed, "a.service": stateActive})
	for _, tt := range []struct {
		name string
		in   request
		want response
	}{
		{"units are read when they start", request{Verb: "daemon-reload"}, response{}},
		{"units are listed by name", request{Verb: "list-units"}, response{Out: "a.service                      loaded active\nb.service                      loaded failed\n"}},
		{"an active unit", request{Verb: "is-active", Units: []string{"a"}}, response{Out: "active\n"}},
		{"the worst of two counts", request{Verb: "is-active", Units: []string{"a", "b.service"}}, response{Out: "active\nfailed\n", Code: codeInactive}},
		{"a failed unit", request{Verb: "is-failed", Units: []string{"b"}}, response{Out: "failed\n"}},
		{"a unit that never ran has not failed", request{Verb: "is-failed", Units: []string{"c"}}, response{Out: "inactive\n", Code: codeInactive}},
		{"a verb that is not known", request{Verb: "isolate", Units: []string{"a"}}, response{Out: "systemctl isolate is not supported on a local machine\n", Code: codeFailed}},
		{"stopping what does not run", request{Verb: "stop", Units: []string{"c"}}, response{}},
		{"stopping what has failed", request{Verb: "stop", Units: []string{"b"}}, response{}},
		{"which is inactive then", request{Verb: "is-active", Units: []string{"b"}}, response{Out: "inactive\n", Code: codeInactive}},
		{"starting what does not exist", request{Verb: "start", Units: []string{"no-such-unit"}}, response{Out: "Failed: Unit no-such-unit.service could not be found.\n", Code: codeNotLoaded}},
		{"enabling it", request{Verb: "enable", Units: []string{"no-such-unit"}}, response{Out: "Failed: Unit no-such-unit.service could not be found.\n", Code: codeNotLoaded}},
		{"asking whether it is enabled", request{Verb: "is-enabled", Units: []string{"no-such-unit"}}, response{Out: "Failed: Unit no-such-unit.service could not be found.\n", Code: codeNotLoaded}},
		{
			"its status",
			request{Verb: "status", Units: []string{"no-such-unit"}},
			response{Out: "Unit no-such-unit.service could not be found.\n   Loaded: not-found\n   Active: inactive (dead)\n", Code: codeNoSuch},
		},
	} {
		if diff := cmp.Diff(tt.want, m.control(tt.in)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

func TestFirstShutdownReasonWins(t *testing.T) {
	m := supervised(nil)
	m.control(request{Verb: ExitReboot})
	m.control(request{Verb: ExitPowerOff})
	if got := <-m.off; got != ExitReboot {
		t.Errorf("the machine ends with %q, want %q", got, ExitReboot)
	}
	select {
	case got := <-m.off:
		t.Errorf("the machine ends again, with %q", got)
	default:
	}
}

func TestStateAnswer(t *testing.T) {
	for _, tt := range []struct {
		verb, state string
		code        int
	}{
		{"is-active", stateActive, 0},
		{"is-active", stateActivating, codeInactive},
		{"is-active", stateInactive, codeInactive},
		{"is-active", stateFailed, codeInactive},
		{"is-failed", stateFailed, 0},
		{"is-failed", stateActive, codeInactive},
		{"is-failed", stateActivating, codeInactive},
		{"is-failed", stateInactive, codeInactive},
	} {
		if got, want := stateAnswer(tt.verb, tt.state), (response{Out: tt.state + "\n", Code: tt.code}); got != want {
			t.Errorf("%s of a unit that is %s: %+v, want %+v", tt.verb, tt.state, got, want)
		}
	}
}

func TestFailure(t *testing.T) {
	for want, err := range map[response]error{
		{}: nil,
		{Out: "Failed: disk is full\n", Code: codeFailed}:                                   errors.New("disk is full"),
		{Out: "Failed: Unit x.service could not be found.\n", Code: codeNotLoaded}:          &unitMissingError{name: "x.service"},
		{Out: "Failed: /bin/x: exit code 2\n", Code: codeFailed}:                            &exitError{argv: []string{"/bin/x"}, status: 2 << 8},
		{Out: "Failed: /bin/y: no such file or directory\n", Code: codeFailed}:              &exitError{argv: []string{"/bin/y"}, err: errors.New("no such file or directory")},
		{Out: "Failed: " + strings.Repeat("x", 117) + "…: exit code 0\n", Code: codeFailed}: &exitError{argv: []string{strings.Repeat("x", 200)}},
	} {
		if got := failure(err); got != want {
			t.Errorf("%v: got %+v, want %+v", err, got, want)
		}
	}
}

func TestServeControl(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	m := supervised(map[string]string{"a.service": stateActive})
	served := make(chan struct{})
	go func() {
		defer close(served)
		m.serveControl(l)
	}()
	for _, garbage := range []string{"", "{", "[]\n", "\x00\xff"} {
		conn, err := net.Dial("unix", socket)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = conn.Write([]byte(garbage))
		conn.Close()
	}
	conn, err := net.Dial("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	var got response
	if err := errors.Join(json.NewEncoder(conn).Encode(request{Verb: "is-active", Units: []string{"a"}}), json.NewDecoder(conn).Decode(&got)); err != nil {
		t.Fatal(err)
	}
	if got.Out != "active\n" || got.Code != 0 {
		t.Errorf("answer %+v", got)
	}
	l.Close()
	select {
	case <-served:
	case <-time.After(time.Minute):
		t.Error("it serves a listener that is closed")
	}
}

func TestLastLines(t *testing.T) {
	for _, tt := range []struct {
		text string
		n    int
		want string
	}{
		{"", 3, ""},
		{"\n\n", 3, ""},
		{"a", 1, "a"},
		{"a\nb\n", 1, "b"},
		{"a\nb", 2, "a\nb"},
		{"a\n\nb\n", 2, "\nb"},
		{"a\nb\nc", 0, ""},
	} {
		if got := lastLines(tt.text, tt.n); got != tt.want {
			t.Errorf("the last %d lines of %q are %q, want %q", tt.n, tt.text, got, tt.want)
		}
	}
}
