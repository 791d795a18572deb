package metal

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/packethost/packngo"
	"k8s.io/utils/ptr"

	"github.com/drover-dev/drover/internal/metal/api"
	"github.com/drover-dev/drover/internal/metal/capacity"
	"github.com/drover-dev/drover/internal/metal/driver"
)

// hostDriver runs machines on a host with room for a number of c3.small.x86, which have 2 CPUs.
type hostDriver struct {
	*fakeDriver
	machines int64
}

func (d hostDriver) Supply() (driver.Supply, error) {
	const plenty = 1 << 40
	return driver.Supply{Host: &driver.Resources{CPUs: 2 * d.machines, MemoryBytes: plenty, DiskBytes: plenty}, FreeDiskBytes: plenty}, nil
}

// newHost serves machines on a host without overcommit.
func newHost(t *testing.T, machines int64) *world {
	t.Helper()
	fake := newFake()
	w := openWorld(t, Options{Home: Home{Dir: t.TempDir()}, DriverName: "fake", Driver: func(ctx context.Context, c driver.Config) (driver.Driver, error) {
		_, err := fake.new(ctx, c)
		return hostDriver{fake, machines}, err
	}})
	w.settings(capacity.Settings{Overcommit: capacity.Overcommit{CPUs: 1}})
	return w
}

func (w *world) settings(s capacity.Settings) {
	w.t.Helper()
	if got := w.call(w.admin, "PUT", "/drover/v1/capacity", s, &api.CapacityReport{}); got != http.StatusOK {
		w.t.Fatalf("changing the capacity answered %d", got)
	}
}

func (w *world) quota(q capacity.Quota) {
	w.t.Helper()
	if got := w.call(w.admin, "PUT", "/drover/v1/projects/"+w.project+"/quota", q, &api.ProjectQuota{}); got != http.StatusOK {
		w.t.Fatalf("changing the quota answered %d", got)
	}
}

func TestLastMachineIsOrderedOnce(t *testing.T) {
	w := newHost(t, 3)
	w.create(order("first"))
	var all sync.WaitGroup
	var ordered, rejected atomic.Int32
	for range 10 {
		all.Go(func() {
			switch w.call(w.token, "POST", "/projects/"+w.project+"/devices", order("next"), nil) {
			case http.StatusCreated:
				ordered.Add(1)
			case http.StatusUnprocessableEntity:
				rejected.Add(1)
			}
		})
	}
	all.Wait()
	if ordered.Load() != 2 || rejected.Load() != 8 {
		t.Errorf("%d of 2 machines were ordered, and %d orders of 8 rejected", ordered.Load(), rejected.Load())
	}
}

func TestFullHostRejectsOrdersUntilAMachineIsRemoved(t *testing.T) {
	w := newHost(t, 1)
	d := w.create(order("first"))
	if got := w.refused(http.StatusUnprocessableEntity, "POST", "/projects/"+w.project+"/devices", order("second")); got != "There aren't available servers in that metro" {
		t.Errorf("message %q", got)
	}
	w.must(http.StatusNoContent, "DELETE", "/devices/"+d.ID+"?force_delete=true", nil, nil)
	w.awaitDeleted(d.ID)
	w.create(order("second"))
}

// TestPackngoSeesCapacityAndQuotas checks the form of errors with a client that others wrote.
func TestPackngoSeesCapacityAndQuotas(t *testing.T) {
	w := newHost(t, 6)
	c, err := packngo.NewClientWithBaseURL("test", w.token, nil, w.http.URL+"/metal/v1/")
	if err != nil {
		t.Fatal(err)
	}
	check := func(quantities ...int) []bool {
		t.Helper()
		in := &packngo.CapacityInput{}
		for _, n := range quantities {
			in.Servers = append(in.Servers, packngo.ServerInfo{Metro: "da", Plan: "c3.small.x86", Quantity: n})
		}
		got, _, err := c.CapacityService.CheckMetros(in)
		if err != nil {
			t.Fatal(err)
		}
		var out []bool
		for _, s := range got.Servers {
			out = append(out, s.Available)
		}
		return out
	}
	if got := check(6); !got[0] {
		t.Error("6 of 6 machines are not available")
	}
	if got := check(7); got[0] {
		t.Error("7 of 6 machines are available")
	}
	if got := check(4, 3, 2); !got[0] || got[1] || !got[2] {
		t.Errorf("4, 3 more and 2 more of 6 machines: %v", got)
	}
	levels := func() string {
		t.Helper()
		all, _, err := c.CapacityService.ListMetros()
		if err != nil {
			t.Fatal(err)
		}
		return (*all)["da"]["c3.small.x86"].Level
	}
	if got := levels(); got != "normal" {
		t.Errorf("level %q with 6 free machines", got)
	}
	create := func() error {
		_, _, err := c.Devices.Create(&packngo.DeviceCreateRequest{ProjectID: w.project, Hostname: "n", Plan: "c3.small.x86", Metro: "da", OS: "ubuntu_22_04"})
		return err
	}
	expect := func(what, message string) {
		t.Helper()
		response := new(packngo.ErrorResponse)
		err := create()
		if !asResponse(err, &response) || response.Response.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(strings.Join(response.Errors, "\n"), message) {
			t.Errorf("%s: %v", what, err)
		}
	}
	w.quota(capacity.Quota{Machines: ptr.To[int64](1)})
	if err := create(); err != nil {
		t.Fatal(err)
	}
	expect("exceeding the quota", "The quota of this project is 1 machines, and 1 are in use")
	if got := levels(); got != "unavailable" {
		t.Errorf("level %q with an exhausted quota", got)
	}
	w.quota(capacity.Quota{})
	w.settings(capacity.Settings{Overcommit: capacity.Overcommit{CPUs: 0.5}})
	if got := levels(); got != "limited" {
		t.Errorf("level %q with 2 free machines", got)
	}
	for range 2 {
		if err := create(); err != nil {
			t.Fatal(err)
		}
	}
	expect("exceeding the capacity", "There aren't available servers in that metro")
	expect("exceeding the capacity", "c3.small.x86 needs 2 CPUs, and 0 are free")
}

func asResponse(err error, into **packngo.ErrorResponse) bool {
	e, ok := err.(*packngo.ErrorResponse) //nolint:errorlint // The client does not wrap it.
	*into = e
	return ok
}

func TestProjectsCantSeeOrChangeCapacity(t *testing.T) {
	w := newHost(t, 3)
	w.refused(http.StatusForbidden, "GET", "/drover/v1/capacity", nil)
	w.refused(http.StatusForbidden, "PUT", "/drover/v1/capacity", capacity.Settings{})
	w.refused(http.StatusForbidden, "PUT", "/drover/v1/projects/"+w.project+"/quota", capacity.Quota{})
	var own api.ProjectQuota
	w.must(http.StatusOK, "GET", "/drover/v1/projects/"+w.project+"/quota", nil, &own)
	if own.Used.Machines != 0 || own.Quota.Machines != nil {
		t.Errorf("an unused project without a quota has %+v", own)
	}
}

func TestCapacityReport(t *testing.T) {
	w := newHost(t, 4)
	w.create(order("first"))
	w.settings(capacity.Settings{Overcommit: capacity.Overcommit{CPUs: 1}, Limits: []capacity.Limit{{Plan: "c3.small.x86", Metro: "da", Devices: 2}}})
	var got api.CapacityReport
	if status := w.call(w.admin, "GET", "/drover/v1/capacity", nil, &got); status != http.StatusOK {
		t.Fatal(status)
	}
	if got.Host == nil || got.Host.CPUs != (api.ResourceCapacity{Real: 8, Total: 8, Used: 2, Free: 6}) {
		t.Errorf("host %+v", got.Host)
	}
	free := map[string]int{}
	for _, p := range got.Plans {
		if p.Free == nil {
			t.Fatalf("%s is unlimited", p.Plan)
		}
		free[p.Plan+"/"+p.Metro] = *p.Free
	}
	if free["c3.small.x86/da"] != 1 || free["c3.small.x86/"] != 3 || free["local.medium/"] != 1 {
		t.Errorf("free machines %v", free)
	}
}

func TestInvalidCapacitySettingsAreRejected(t *testing.T) {
	w := newHost(t, 1)
	for path, body := range map[string]any{
		"/drover/v1/capacity":                         capacity.Settings{Limits: []capacity.Limit{{Plan: "no.such"}}},
		"/drover/v1/projects/" + w.project + "/quota": capacity.Quota{CPUs: ptr.To[int64](-1)},
	} {
		var e api.Error
		if got := w.call(w.admin, "PUT", path, body, &e); got != http.StatusUnprocessableEntity || len(e.Errors) == 0 {
			t.Errorf("%s answered %d %v", path, got, e.Errors)
		}
	}
	w.refused(http.StatusUnprocessableEntity, "POST", "/capacity/metros", map[string]any{"servers": []any{map[string]any{"metro": "da", "plan": "c3.small.x86", "quantity": -1}}})
}
