package metal

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/drover-dev/drover/internal/metal/api"
	"github.com/drover-dev/drover/internal/metal/fault"
)

func (w *world) fault(f map[string]any) {
	w.t.Helper()
	w.must(http.StatusCreated, "POST", "/drover/v1/projects/"+w.project+"/faults", f, nil)
}

// answer is the head of a response.
type answer struct {
	StatusCode int
	Header     http.Header
}

// raw sends a request and returns the unmodified response.
func (w *world) raw(ctx context.Context, method, path, body string) (answer, []byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, w.http.URL+path, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	req.Header.Set("X-Auth-Token", w.token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return answer{}, nil, err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	return answer{resp.StatusCode, resp.Header}, data, err
}

func TestInjectedFaultsFailCalls(t *testing.T) {
	w := openWorld(t, Options{Home: Home{Dir: t.TempDir()}, Driver: quiet(), DriverName: "fake"})
	path := "/metal/v1/projects/" + w.project + "/devices"
	tests := map[string]struct {
		fault  map[string]any
		status int
		body   string
	}{
		"429":            {map[string]any{"kind": fault.RateLimit, "count": 1}, http.StatusTooManyRequests, "Rate limit"},
		"403 with HTML":  {map[string]any{"kind": fault.RateLimitHTML, "count": 1}, http.StatusForbidden, "<html>"},
		"500":            {map[string]any{"kind": fault.ServerError, "count": 1}, http.StatusInternalServerError, "Oh snap"},
		"502":            {map[string]any{"kind": fault.ServerError, "status": 502, "count": 1}, http.StatusBadGateway, "Oh snap"},
		"only this path": {map[string]any{"kind": fault.ServerError, "path": "/projects/*/devices", "method": "GET", "count": 1}, http.StatusInternalServerError, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w.fault(tt.fault)
			resp, data, err := w.raw(t.Context(), "GET", path, "")
			if err != nil || resp.StatusCode != tt.status || !strings.Contains(string(data), tt.body) {
				t.Errorf("answered %v %q, %v", resp, data, err)
			}
			if resp, _, err := w.raw(t.Context(), "GET", path, ""); err != nil || resp.StatusCode != http.StatusOK {
				t.Errorf("the fault struck more than once: %v %v", resp, err)
			}
		})
	}
}

func TestInjectedFaultDropsTheResponse(t *testing.T) {
	for name, f := range map[string]map[string]any{
		"cut in half":    {"kind": fault.Truncate, "method": "POST", "count": 1},
		"never sent":     {"kind": fault.Timeout, "method": "POST", "count": 1, "after": true},
		"turned to 5xx":  {"kind": fault.ServerError, "method": "POST", "count": 1, "after": true},
		"taken for spam": {"kind": fault.RateLimitHTML, "method": "POST", "count": 1, "after": true},
	} {
		t.Run(name, func(t *testing.T) {
			w := openWorld(t, Options{Home: Home{Dir: t.TempDir()}, Driver: quiet(), DriverName: "fake"})
			w.fault(f)
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			defer cancel()
			resp, data, err := w.raw(ctx, "POST", "/projects/"+w.project+"/devices", `{"hostname":"h","plan":"c3.small.x86","metro":"da","operating_system":"x"}`)
			switch f["kind"] {
			case fault.Truncate:
				if !errors.Is(err, io.ErrUnexpectedEOF) || len(data) == 0 {
					t.Errorf("read %q, %v", data, err)
				}
			case fault.Timeout:
				if !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("answered %v %v", resp, err)
				}
			default:
				if err != nil || resp.StatusCode < 400 {
					t.Errorf("answered %v %v", resp, err)
				}
			}
			var out api.Devices
			w.must(http.StatusOK, "GET", "/projects/"+w.project+"/devices", nil, &out)
			if len(out.Devices) != 1 {
				t.Errorf("there are %d devices; the call was to be carried out, and only its answer lost", len(out.Devices))
			}
		})
	}
}

func TestInjectedTimeoutDoesNotBlockShutdown(t *testing.T) {
	w := openWorld(t, Options{Home: Home{Dir: t.TempDir()}, Driver: quiet(), DriverName: "fake"})
	w.fault(map[string]any{"kind": fault.Timeout})
	ended := make(chan error, 1)
	go func() {
		_, _, err := w.raw(context.Background(), "GET", "/projects", "")
		ended <- err
	}()
	w.eventually("the call hangs", func() bool { return w.s.faults.List(w.project)[0].Struck > 0 })
	w.s.EndWaits()
	select {
	case err := <-ended:
		if err == nil {
			t.Error("a call that times out was answered")
		}
	case <-time.After(5 * time.Second):
		t.Error("the call still hangs")
	}
}

func TestNoCapacity(t *testing.T) {
	w := openWorld(t, Options{Home: Home{Dir: t.TempDir()}, Driver: quiet(), DriverName: "fake"})
	w.fault(map[string]any{"kind": fault.NoCapacity, "count": 2})
	devices := "/projects/" + w.project + "/devices"
	if m := w.refused(http.StatusUnprocessableEntity, "POST", devices, order("a")); m != "There aren't available servers in that metro" {
		t.Errorf("metro: got message %q", m)
	}
	var c api.CapacityCheck
	w.must(http.StatusOK, "POST", "/capacity/metros", map[string]any{"servers": []any{map[string]any{"metro": "da", "plan": "c3.small.x86", "quantity": "1"}}}, &c)
	if c.Servers[0].Available {
		t.Error("capacity is available while there is none")
	}
	at := map[string]any{"plan": "c3.small.x86", "operating_system": "x", "facility": "ewr1"}
	if m := w.refused(http.StatusUnprocessableEntity, "POST", devices, at); m != "The facility ewr1 has no provisionable c3.small.x86 servers matching your criteria" {
		t.Errorf("facility: got message %q", m)
	}
	w.create(order("fits"))
}

func TestInjectedFaultFailsProvisioning(t *testing.T) {
	for name, tt := range map[string]struct{ asked, want int }{
		"a device on demand vanishes with 403":  {0, http.StatusForbidden},
		"a device on demand vanishes with 404":  {404, http.StatusNotFound},
		"403 can be asked for by its own value": {403, http.StatusForbidden},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.fault(map[string]any{"kind": fault.FailProvisioning, "status": tt.asked, "count": 1, "hostname": "bad-*"})
			good, bad := w.create(order("good")), w.create(order("bad-1"))
			w.eventually("the device vanished", func() bool { return w.call(w.token, "GET", "/devices/"+bad.ID, nil, nil) == tt.want })
			w.awaitState(good.ID, StateActive)
			var out api.Devices
			w.must(http.StatusOK, "GET", "/projects/"+w.project+"/devices", nil, &out)
			if len(out.Devices) != 1 {
				t.Errorf("the list has %d devices, want only the good one", len(out.Devices))
			}
		})
	}
}

func TestReservedDeviceStaysFailed(t *testing.T) {
	w := newWorld(t)
	var h api.HardwareReservation
	w.call(w.admin, "POST", "/drover/v1/projects/"+w.project+"/hardware-reservations", map[string]string{"plan": "c3.small.x86", "metro": "da"}, &h)
	w.fault(map[string]any{"kind": fault.FailProvisioning, "count": 1})
	body := order("reserved")
	body["hardware_reservation_id"] = h.ID
	d := w.create(body)
	w.awaitState(d.ID, StateFailed)
	if m := w.refused(http.StatusUnprocessableEntity, "POST", "/projects/"+w.project+"/devices", body); m != "Server is not provisionable" {
		t.Errorf("reservation of a failed device: got message %q", m)
	}
	w.must(http.StatusNoContent, "DELETE", "/devices/"+d.ID, nil, nil)
	w.awaitDeleted(d.ID)
	w.awaitState(w.create(body).ID, StateActive)
}

func TestSlowProvisioning(t *testing.T) {
	w := newWorld(t)
	w.fault(map[string]any{"kind": fault.SlowProvisioning, "delay": "400ms", "count": 1})
	began := time.Now()
	d := w.create(order("slow"))
	w.awaitState(d.ID, StateActive)
	if took := time.Since(began); took < 400*time.Millisecond {
		t.Errorf("a slow device was active after %s", took)
	}
}

func TestQuotaAndKeys(t *testing.T) {
	w := newWorld(t)
	w.fault(map[string]any{"kind": fault.AddressQuota, "count": 2})
	w.fault(map[string]any{"kind": fault.RequireSSHKeys})
	block := map[string]any{"type": "public_ipv4", "quantity": 1, "metro": "da", "fail_on_approval_required": true}
	w.refused(http.StatusUnprocessableEntity, "POST", "/projects/"+w.project+"/ips", block)
	delete(block, "fail_on_approval_required")
	var pending api.IPReservation
	w.must(http.StatusCreated, "POST", "/projects/"+w.project+"/ips", block, &pending)
	if pending.State != blockPending || pending.Address != "" {
		t.Errorf("over quota: %s %q", pending.State, pending.Address)
	}
	w.refused(http.StatusUnprocessableEntity, "POST", "/projects/"+w.project+"/devices", order("keyless"))
	w.must(http.StatusCreated, "POST", "/ssh-keys", map[string]string{"label": "k", "key": testKey}, nil)
	w.create(order("with-key"))
}

func TestRateLimitIsEnforced(t *testing.T) {
	w := openWorld(t, Options{Home: Home{Dir: t.TempDir()}, Driver: quiet(), DriverName: "fake", RateLimit: 3})
	var last answer
	for range 4 {
		last, _, _ = w.raw(t.Context(), "GET", "/projects", "")
	}
	if last.StatusCode != http.StatusTooManyRequests || last.Header.Get("X-RateLimit-Remaining") != "0" || last.Header.Get("X-RateLimit-Reset") == "" {
		t.Errorf("the fourth call of three answered %d with %v", last.StatusCode, last.Header)
	}
}
