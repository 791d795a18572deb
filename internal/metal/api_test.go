package metal

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-dev/drover/internal/metal/api"
	"github.com/drover-dev/drover/internal/metal/driver"
)

func TestListsArePaginated(t *testing.T) {
	w := openWorld(t, Options{Home: Home{Dir: t.TempDir()}, Driver: quiet(), DriverName: "fake"})
	for i := range 25 {
		w.create(order(fmt.Sprintf("host-%02d", i), "all", fmt.Sprintf("mod:%d", i%5)))
	}
	type pageOf struct {
		hosts          []string
		total, current int
		last           int
		next, previous bool
	}
	tests := map[string]struct {
		query string
		want  pageOf
	}{
		"ten by default": {"", pageOf{hosts("host-%02d", 0, 10), 25, 1, 3, true, false}},
		"the last page":  {"page=3", pageOf{hosts("host-%02d", 20, 25), 25, 3, 3, false, true}},
		"beyond the end": {"page=9", pageOf{nil, 25, 9, 3, false, true}},
		"larger pages":   {"per_page=20", pageOf{hosts("host-%02d", 0, 20), 25, 1, 2, true, false}},
		"by tag":         {"tag=mod:3", pageOf{[]string{"host-03", "host-08", "host-13", "host-18", "host-23"}, 5, 1, 1, false, false}},
		"by tag and hostname": {
			"tag=mod:3&hostname=host-13", pageOf{[]string{"host-13"}, 1, 1, 1, false, false},
		},
		"by tag and metro, second page": {
			"tag=mod:3&metro=da&page=2&per_page=2", pageOf{[]string{"host-13", "host-18"}, 5, 2, 3, true, true},
		},
		"by another metro":    {"metro=sv", pageOf{nil, 0, 1, 1, false, false}},
		"by search":           {"search=HOST-2", pageOf{hosts("host-%02d", 20, 25), 5, 1, 1, false, false}},
		"only reserved":       {"reserved=true", pageOf{nil, 0, 1, 1, false, false}},
		"only not reserved":   {"reserved=false&per_page=1", pageOf{[]string{"host-00"}, 25, 1, 25, true, false}},
		"by an unknown tag":   {"tag=none", pageOf{nil, 0, 1, 1, false, false}},
		"by part of a search": {"search=mod:4&per_page=2&page=3", pageOf{[]string{"host-24"}, 5, 3, 3, false, true}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var out api.Devices
			w.must(http.StatusOK, "GET", "/projects/"+w.project+"/devices?"+tt.query, nil, &out)
			got := pageOf{nil, out.Meta.Total, out.Meta.CurrentPage, out.Meta.LastPage, out.Meta.Next != nil, out.Meta.Previous != nil}
			for _, d := range out.Devices {
				got.hosts = append(got.hosts, d.Hostname)
			}
			if diff := cmp.Diff(tt.want, got, cmp.AllowUnexported(pageOf{})); diff != "" {
				t.Errorf("page (-want +got):\n%s", diff)
			}
		})
	}
	w.refused(http.StatusUnprocessableEntity, "GET", "/projects/"+w.project+"/devices?page=-1", nil)
}

func hosts(format string, from, to int) []string {
	var out []string
	for i := from; i < to; i++ {
		out = append(out, fmt.Sprintf(format, i))
	}
	return out
}

func TestIndexFollowsChanges(t *testing.T) {
	w := openWorld(t, Options{Home: Home{Dir: t.TempDir()}, Driver: quiet(), DriverName: "fake"})
	d := w.create(order("one", "old"))
	w.must(http.StatusOK, "PUT", "/devices/"+d.ID, map[string]any{"tags": []string{"new"}, "hostname": "two"}, nil)
	for query, want := range map[string]int{"tag=old": 0, "tag=new": 1, "hostname=one": 0, "hostname=two": 1} {
		var out api.Devices
		w.must(http.StatusOK, "GET", "/projects/"+w.project+"/devices?"+query, nil, &out)
		if out.Meta.Total != want || len(out.Devices) != want {
			t.Errorf("%s finds %d, want %d", query, out.Meta.Total, want)
		}
	}
}

func TestTokensSeeOnlyTheirProject(t *testing.T) {
	w := newWorld(t)
	var other api.Project
	if got := w.call(w.admin, "POST", "/projects", map[string]string{"name": "other"}, &other); got != http.StatusCreated || other.Token == "" {
		t.Fatalf("creating a project answered %d with token %q", got, other.Token)
	}
	d := w.create(order("mine"))
	for _, tt := range []struct {
		name, token       string
		projects, devices int
	}{
		{"the owner", w.token, 1, 1},
		{"another", other.Token, 1, 0},
		{"the admin", w.admin, 2, 1},
	} {
		var projects api.Projects
		w.call(tt.token, "GET", "/projects", nil, &projects)
		var devices api.Devices
		w.call(tt.token, "GET", "/drover/v1/devices", nil, &devices)
		if len(projects.Projects) != tt.projects || len(devices.Devices) != tt.devices {
			t.Errorf("%s sees %d projects and %d devices, want %d and %d", tt.name, len(projects.Projects), len(devices.Devices), tt.projects, tt.devices)
		}
	}
	if got := w.call(w.admin, "GET", "/devices/"+d.ID, nil, nil); got != http.StatusOK {
		t.Errorf("the admin does not see the device: %d", got)
	}
}

// TestStrictClientsCanReadReservations lists every key that the strictest
// client knows; one more would make it drop the reservation.
func TestStrictClientsCanReadReservations(t *testing.T) {
	known := strings.Fields(`id address address_family cidr type public management manageable enabled bill addon global_ip state tags assignments
		available facility metro project project_lite requested_by gateway netmask network customdata details metal_gateway created_at href`)
	w := newWorld(t)
	w.awaitState(w.create(order("a")).ID, StateActive)
	w.must(http.StatusCreated, "POST", "/projects/"+w.project+"/ips", map[string]any{"type": "public_ipv4", "quantity": 2, "facility": "da11", "metro": "", "tags": []string{"t"}}, nil)
	var out struct {
		IPAddresses []map[string]json.RawMessage `json:"ip_addresses"`
	}
	w.must(http.StatusOK, "GET", "/projects/"+w.project+"/ips", nil, &out)
	if len(out.IPAddresses) != 3 {
		t.Fatalf("%d blocks, want the reserved one and two of the device", len(out.IPAddresses))
	}
	for _, block := range out.IPAddresses {
		for key := range block {
			if !slices.Contains(known, key) {
				t.Errorf("key %q is not known to strict clients", key)
			}
		}
		if string(block["type"]) == `""` {
			t.Error("the type is required")
		}
	}
}

func TestElasticAddresses(t *testing.T) {
	fake := newFake()
	w := openWorld(t, Options{Home: Home{Dir: t.TempDir()}, Driver: fake.new, DriverName: "fake"})
	one, two := w.create(order("one")), w.create(order("two"))
	far := w.create(map[string]any{"hostname": "far", "plan": "c3.small.x86", "metro": "sv", "operating_system": "x"})
	reserve := func(quantity int) (b api.IPReservation) {
		w.must(http.StatusCreated, "POST", "/projects/"+w.project+"/ips", map[string]any{"type": "public_ipv4", "quantity": quantity, "metro": "da"}, &b)
		return b
	}
	b, four := reserve(1), reserve(4)
	assign := func(device, address string) map[string]any { return map[string]any{"address": address} }
	var a api.IPAssignment
	w.must(http.StatusCreated, "POST", "/devices/"+one.ID+"/ips", assign(one.ID, b.Address), &a)
	vip := netip.MustParseAddr(b.Address)
	w.eventually("the driver sets the address", func() bool { return fake.answersOn(one.ID, vip) })

	for name, tt := range map[string]struct{ device, address, want string }{
		"an address that is in use":          {two.ID, b.Address, "already assigned"},
		"an unknown address":                 {two.ID, "203.0.113.9", "not part of an address block"},
		"a management address":               {two.ID, publicAddress(w, one.ID), "management address"},
		"an address of another metro":        {far.ID, four.Address, "is in metro da"},
		"what is no address":                 {two.ID, "here", "not a valid address"},
		"a block that is larger than it has": {two.ID, four.Address + "/29", "not part of"},
	} {
		if message := w.refused(http.StatusUnprocessableEntity, "POST", "/devices/"+tt.device+"/ips", assign(tt.device, tt.address)); !strings.Contains(message, tt.want) {
			t.Errorf("%s: got %q, want %q in it", name, message, tt.want)
		}
	}
	third := netip.MustParseAddr(four.Address).Next().Next().String()
	w.must(http.StatusCreated, "POST", "/devices/"+two.ID+"/ips", assign(two.ID, third), nil)
	var free api.IPAvailable
	w.must(http.StatusOK, "GET", "/ips/"+four.ID+"/available?cidr=31", nil, &free)
	if diff := cmp.Diff([]string{four.Address + "/31"}, free.Available); diff != "" {
		t.Errorf("free parts (-want +got):\n%s", diff)
	}

	// Moving: unassigned from one device, assigned to the other.
	w.must(http.StatusNoContent, "DELETE", "/ips/"+a.ID, nil, nil)
	w.must(http.StatusCreated, "POST", "/devices/"+two.ID+"/ips", assign(two.ID, b.Address), nil)
	w.eventually("the address has moved", func() bool {
		return fake.answersOn(one.ID) && fake.answersOn(two.ID, netip.MustParseAddr(third), vip)
	})

	// A deleted device gives elastic addresses back to their block.
	w.must(http.StatusNoContent, "DELETE", "/devices/"+two.ID+"?force_delete=true", nil, nil)
	w.awaitDeleted(two.ID)
	w.must(http.StatusOK, "GET", "/ips/"+b.ID, nil, &b)
	if len(b.Assignments) != 0 {
		t.Errorf("the block of a deleted device is still assigned: %v", b.Assignments)
	}
	w.must(http.StatusNoContent, "DELETE", "/ips/"+b.ID, nil, nil)
	w.must(http.StatusNoContent, "DELETE", "/ips/"+four.ID, nil, nil)
}

// publicAddress is the public management address of a device.
func publicAddress(w *world, id string) string {
	var out api.IPAssignments
	w.must(http.StatusOK, "GET", "/devices/"+id+"/ips", nil, &out)
	return out.IPAddresses[0].Address
}

func TestFlatNetworks(t *testing.T) {
	fake := newFake()
	fake.networks = driver.Networks{Public: netip.MustParsePrefix("198.18.4.0/29"), Private: netip.MustParsePrefix("10.200.0.0/24"), Flat: true}
	w := openWorld(t, Options{Home: Home{Dir: t.TempDir()}, Driver: fake.new, DriverName: "fake"})
	var last string
	var got []string
	for i := range 5 {
		last = w.create(order(fmt.Sprintf("n%d", i))).ID
		got = append(got, publicAddress(w, last))
	}
	slices.Sort(got)
	if diff := cmp.Diff([]string{"198.18.4.2", "198.18.4.3", "198.18.4.4", "198.18.4.5", "198.18.4.6"}, got); diff != "" {
		t.Errorf("addresses (-want +got):\n%s", diff)
	}
	w.eventually("the last machine was asked for", func() bool { _, found := fake.has(last); return found })
	m, _ := fake.has(last)
	if a := m.Addresses[0]; a.Prefix != fake.networks.Public || a.Gateway != netip.MustParseAddr("198.18.4.1") || !a.Public || !a.Management {
		t.Errorf("the machine was given %+v", a)
	}
	if message := w.refused(http.StatusUnprocessableEntity, "POST", "/projects/"+w.project+"/devices", order("one-too-many")); !strings.Contains(message, "no free addresses") {
		t.Errorf("full network: got message %q", message)
	}
	w.must(http.StatusNoContent, "DELETE", "/devices/"+last+"?force_delete=true", nil, nil)
	w.awaitDeleted(last)
	w.create(order("fits-again"))
}

func TestHardwareReservations(t *testing.T) {
	w := openWorld(t, Options{Home: Home{Dir: t.TempDir()}, Driver: quiet(), DriverName: "fake"})
	var ids []string
	for range 2 {
		var h api.HardwareReservation
		if got := w.call(w.admin, "POST", "/drover/v1/projects/"+w.project+"/hardware-reservations", map[string]string{"plan": "c3.small.x86", "metro": "da"}, &h); got != http.StatusCreated {
			t.Fatalf("creating a reservation answered %d", got)
		}
		ids = append(ids, h.ID)
	}
	order := func(host string, reservation any) map[string]any {
		return map[string]any{"hostname": host, "plan": "c3.small.x86", "operating_system": "x", "hardware_reservation_id": reservation}
	}
	one := w.create(order("one", ids[0]))
	if one.HardwareReservation == nil || one.HardwareReservation.ID != ids[0] || one.Facility.Code != "da11" {
		t.Errorf("the device is on %v in %v", one.HardwareReservation, one.Facility)
	}
	if m := w.refused(http.StatusUnprocessableEntity, "POST", "/projects/"+w.project+"/devices", order("two", ids[0])); m != "Server is not provisionable" {
		t.Errorf("reservation in use: got message %q", m)
	}
	if m := w.refused(http.StatusUnprocessableEntity, "POST", "/projects/"+w.project+"/devices", order("two", ids[0][:8])); m != ids[0][:8]+" is not a valid hardware reservation" {
		t.Errorf("short ID: got message %q", m)
	}
	two := w.create(order("two", strings.Join(ids, ",")))
	if two.HardwareReservation.ID != ids[1] {
		t.Errorf("a list did not take the free one, but %v", two.HardwareReservation)
	}
	if m := w.refused(http.StatusServiceUnavailable, "POST", "/projects/"+w.project+"/devices", order("three", "next-available")); !strings.Contains(m, " no available hardware reservations ") {
		t.Errorf("no free reservation: got message %q", m)
	}
	w.must(http.StatusNoContent, "DELETE", "/devices/"+one.ID+"?force_delete=true", nil, nil)
	w.awaitDeleted(one.ID)
	var list api.HardwareReservations
	w.must(http.StatusOK, "GET", "/projects/"+w.project+"/hardware-reservations?provisionable=only", nil, &list)
	if len(list.HardwareReservations) != 1 || list.HardwareReservations[0].ID != ids[0] {
		t.Errorf("provisionable = %v, want the one that was freed", list.HardwareReservations)
	}
	if three := w.create(order("three", "next-available")); three.HardwareReservation.ID != ids[0] {
		t.Errorf("next-available is %v", three.HardwareReservation)
	}
}

func TestDeletionRejectsUsedObjects(t *testing.T) {
	fake := newFake()
	w := openWorld(t, Options{Home: Home{Dir: t.TempDir()}, Driver: fake.new, DriverName: "fake"})
	d := w.create(order("one"))
	if m := w.refused(http.StatusUnprocessableEntity, "DELETE", "/devices/"+d.ID, nil); m != "Cannot delete a device while it is provisioning" {
		t.Errorf("got message %q", m)
	}
	w.eventually("the machine was asked for", func() bool { _, found := fake.has(d.ID); return found })
	fake.sink.Report(d.ID, driver.Event{Phase: driver.Running})
	w.must(http.StatusOK, "PUT", "/devices/"+d.ID, map[string]any{"locked": true}, nil)
	w.refused(http.StatusUnprocessableEntity, "DELETE", "/devices/"+d.ID+"?force_delete=true", nil)
	w.must(http.StatusOK, "PUT", "/devices/"+d.ID, map[string]any{"locked": false}, nil)

	block := make(chan struct{})
	fake.mu.Lock()
	fake.fail = func(call, _ string) error {
		if call == "remove" {
			select {
			case <-block:
			default:
				return fmt.Errorf("the machine is stuck")
			}
		}
		return nil
	}
	fake.mu.Unlock()
	w.must(http.StatusNoContent, "DELETE", "/devices/"+d.ID, nil, nil)
	w.must(http.StatusNoContent, "DELETE", "/devices/"+d.ID, nil, nil)
	w.eventually("the driver was asked", func() bool { return fake.count("remove "+d.ID) > 1 })
	if got := w.device(d.ID); got.State != StateDeprovisioning || len(got.IPAddresses) == 0 {
		t.Errorf("device with a machine: got state %s and %d addresses", got.State, len(got.IPAddresses))
	}
	var m Machine
	w.must(http.StatusOK, "GET", "/drover/v1/devices/"+d.ID, nil, &m)
	if !strings.Contains(m.Trouble, "the machine is stuck") {
		t.Errorf("got trouble %q", m.Trouble)
	}
	close(block)
	w.awaitDeleted(d.ID)
}

func TestUnknownPathsAndInvalidBodies(t *testing.T) {
	w := newWorld(t)
	w.refused(http.StatusNotFound, "GET", "/metal/v1/nothing", nil)
	w.refused(http.StatusNotFound, "GET", "/devices/none", nil)
	w.refused(http.StatusBadRequest, "POST", "/projects/"+w.project+"/devices", `{"plan":`)
	w.refused(http.StatusBadRequest, "POST", "/projects/"+w.project+"/devices", `{"plan":7}`)
	w.refused(http.StatusUnprocessableEntity, "POST", "/userdata/validate", map[string]string{"userdata": "#cloud-config\na: [b"})
	w.must(http.StatusNoContent, "POST", "/userdata/validate", map[string]string{"userdata": "#cloud-config\na: b"}, nil)
}

func TestLargeUserdataIsUnchanged(t *testing.T) {
	w := openWorld(t, Options{Home: Home{Dir: t.TempDir()}, Driver: newFake().new, DriverName: "fake"})
	big := order("big")
	big["userdata"] = "#cloud-config\n# {{ " + strings.Repeat("x", 1<<20)
	if d := w.create(big); w.device(d.ID).Userdata != big["userdata"] {
		t.Error("a megabyte of userdata came back changed")
	}
}
