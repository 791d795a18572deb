package guest

import (
	"bufio"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"os"
	"slices"
	"strings"
	"time"
)

// controlSocket is where the first process serves systemctl.
const controlSocket = "/run/drover/control.sock"

// request is a line from systemctl, response the line sent back.
type request struct {
	Verb  string
	Units []string
	Now   bool
}

type response struct {
	Out  string
	Code int
}

// Exit codes of systemctl.
const (
	codeFailed    = 1
	codeInactive  = 3
	codeNoSuch    = 4
	codeNotLoaded = 5
)

// serveControl serves until the listener is closed.
func (m *machine) serveControl(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer conn.Close()
			var r request
			if err := json.NewDecoder(bufio.NewReader(conn)).Decode(&r); err != nil {
				return
			}
			json.NewEncoder(conn).Encode(m.control(r)) //nolint:errcheck // the client has gone
		}()
	}
}

// control executes a request of systemctl.
func (m *machine) control(r request) response {
	switch r.Verb {
	case "daemon-reload", "daemon-reexec", "reset-failed", "preset", "mask", "unmask":
		return response{} // Units are read again whenever they are started.
	case ExitPowerOff, ExitReboot:
		m.shutDown(r.Verb)
		return response{}
	case "list-units":
		return m.listUnits()
	}
	var all response
	for _, unit := range r.Units {
		one := m.controlUnit(r, unit)
		all.Out += one.Out
		all.Code = max(all.Code, one.Code)
	}
	return all
}

func (m *machine) controlUnit(r request, unit string) response {
	switch r.Verb {
	case "start":
		return failure(m.services.start(unit))
	case "stop":
		m.services.end(unit)
		return response{}
	case "restart", "reload-or-restart", "try-restart", "reload", "force-reload":
		m.services.end(unit)
		return failure(m.services.start(unit))
	case "enable":
		if err := enable(unit); err != nil {
			return failure(err)
		}
		if r.Now {
			return failure(m.services.start(unit))
		}
		return response{}
	case "disable":
		if r.Now {
			m.services.end(unit)
		}
		return failure(disable(unit))
	case "is-enabled":
		return isEnabled(unit)
	case "is-active", "is-failed":
		return m.isActive(r.Verb, unit)
	case "status", "show", "cat":
		return m.status(unit)
	}
	return response{Out: fmt.Sprintf("systemctl %s is not supported on a local machine\n", r.Verb), Code: codeFailed}
}

func failure(err error) response {
	if err == nil {
		return response{}
	}
	if _, ok := err.(*unitMissingError); ok { //nolint:errorlint // it is never wrapped
		return response{Out: "Failed: " + err.Error() + "\n", Code: codeNotLoaded}
	}
	return response{Out: "Failed: " + err.Error() + "\n", Code: codeFailed}
}

func isEnabled(unit string) response {
	if _, err := loadUnit("/", unit); err != nil {
		return failure(err)
	}
	if enabled(unit) {
		return response{Out: "enabled\n"}
	}
	return response{Out: "disabled\n", Code: codeFailed}
}

func (m *machine) isActive(verb, unit string) response {
	state, _ := m.services.state(unit)
	return stateAnswer(verb, state)
}

// stateAnswer succeeds only in the state that the verb asks about.
func stateAnswer(verb, state string) response {
	r := response{Out: state + "\n"}
	if wanted := map[string]string{"is-active": stateActive, "is-failed": stateFailed}[verb]; state != wanted {
		r.Code = codeInactive
	}
	return r
}

func (m *machine) status(name string) response {
	u, err := loadUnit("/", name)
	if err != nil {
		return response{Out: fmt.Sprintf("%s\n   Loaded: not-found\n   Active: inactive (dead)\n", err), Code: codeNoSuch}
	}
	state, svc := m.services.state(name)
	var b strings.Builder
	word := map[bool]string{true: "enabled", false: "disabled"}[enabled(name)]
	fmt.Fprintf(&b, "● %s - %s\n   Loaded: loaded (%s; %s)\n   Active: %s\n", u.name, u.description, u.path, word, state)
	if svc != nil {
		fmt.Fprintf(&b, "    Since: %s\n", svc.since.Format(time.RFC3339))
		if svc.pid > 0 {
			fmt.Fprintf(&b, " Main PID: %d\n", svc.pid)
		}
		if svc.last != "" {
			fmt.Fprintf(&b, "     Last: %s\n", svc.last)
		}
	}
	data, _ := os.ReadFile(logPath(name))
	b.WriteString("\n" + lastLines(string(data), 10) + "\n")
	r := response{Out: b.String()}
	if state != stateActive {
		r.Code = codeInactive
	}
	return r
}

func (m *machine) listUnits() response {
	m.services.mu.Lock()
	defer m.services.mu.Unlock()
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(m.services.running)) {
		fmt.Fprintf(&b, "%-30s loaded %s\n", name, m.services.running[name].state)
	}
	return response{Out: b.String()}
}

func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
