package metal

import (
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/drover-dev/drover/internal/metal/api"
	"github.com/drover-dev/drover/internal/metal/driver"
	"github.com/drover-dev/drover/internal/metal/inventory"
)

// powered returns what happened to the power of servers that no device has.
func (w *serverWorld) powered() (out []string) {
	w.driver.set(func() { out = slices.Clone(w.driver.powered) })
	return out
}

// text returns the text of a response to the administrator.
func (w *serverWorld) text(path string) string {
	w.t.Helper()
	req, err := http.NewRequestWithContext(w.t.Context(), http.MethodGet, w.http.URL+path, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	req.Header.Set("X-Auth-Token", w.admin)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return string(data)
}

func TestServersShowTheirUser(t *testing.T) {
	w := newServerWorld(t, "one", "two")
	w.create(order("dev-cp-1", "capp:cluster-id:dev"))
	if u := w.server("one").User; u == nil || u.Name() != "dev/dev-cp-1" || u.State == "" {
		t.Errorf("the server has the user %+v", u)
	}
	var all api.Servers
	w.admins(http.StatusOK, "GET", "/drover/v1/servers", nil, &all)
	if all.Servers[0].User == nil || all.Servers[1].User != nil {
		t.Errorf("the inventory has the users %+v and %+v", all.Servers[0].User, all.Servers[1].User)
	}
}

func TestUsedServersChangeTheirPowerAsDevices(t *testing.T) {
	w := newServerWorld(t, "one")
	d := w.create(order("node-1"))
	w.admins(http.StatusUnprocessableEntity, "POST", "/drover/v1/servers/one/power", api.ServerPower{State: "off"}, nil) // It is being provisioned.
	if err := w.s.Report(d.ID, driver.Event{Phase: driver.Running}); err != nil {
		t.Fatal(err)
	}
	w.awaitState(d.ID, StateActive)
	w.admins(http.StatusOK, "POST", "/drover/v1/servers/one/power", api.ServerPower{State: "off"}, nil)
	w.eventually("machine is off", func() bool { return w.driver.poweredAs(d.ID, driver.Off) })
	if powered := w.powered(); len(powered) > 0 {
		t.Errorf("the server of a machine was shut down behind its back: %q", powered)
	}
	if s := w.server("one"); s.State != inventory.InUse || s.User.State != StatePoweringOff {
		t.Errorf("the server is %s with a device that is %s", s.State, s.User.State)
	}
}

func TestFreeServersAreShutDown(t *testing.T) {
	for name, tt := range map[string]struct {
		state   string
		fails   error
		status  int
		powered []string
		problem string // part of the message; empty means that the server stays Ready
	}{
		"off":               {"off", nil, http.StatusOK, []string{"one poweroff"}, "was shut down"},
		"reboot":            {"reboot", nil, http.StatusOK, []string{"one reboot"}, "was restarted"},
		"a failure":         {"off", errors.New("unreachable"), http.StatusUnprocessableEntity, []string{"one poweroff"}, "poweroff failed: unreachable"},
		"on is impossible":  {"on", nil, http.StatusUnprocessableEntity, nil, ""},
		"an unknown state":  {"standby", nil, http.StatusUnprocessableEntity, nil, ""},
		"without any state": {"", nil, http.StatusUnprocessableEntity, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newServerWorld(t, "one")
			w.driver.set(func() { w.driver.powerFails = tt.fails })
			w.admins(tt.status, "POST", "/drover/v1/servers/one/power", api.ServerPower{State: tt.state}, nil)
			if got := w.powered(); !slices.Equal(got, tt.powered) {
				t.Errorf("got %q, want %q", got, tt.powered)
			}
			s := w.server("one")
			if tt.problem == "" {
				if s.State != inventory.Ready {
					t.Errorf("the server is %s", s.State)
				}
				return
			}
			if s.State != inventory.Discovered || len(s.Problems) != 1 || !strings.Contains(s.Problems[0].Message, tt.problem) {
				t.Errorf("the server is %s with %+v", s.State, s.Problems)
			}
			w.admins(http.StatusOK, "POST", "/drover/v1/servers/one/check", nil, &s)
			if s.State != inventory.Ready {
				t.Errorf("after a check, the server is %s", s.State)
			}
		})
	}
}

func TestTheLogOfServersIsStreamed(t *testing.T) {
	w := newServerWorld(t, "one")
	for path, want := range map[string]string{
		"/drover/v1/servers/one/console":             "log of one, follow false",
		"/drover/v1/servers/one/console?follow=true": "log of one, follow true",
	} {
		if got := w.text(path); got != want {
			t.Errorf("%s answered %q, want %q", path, got, want)
		}
	}
}
