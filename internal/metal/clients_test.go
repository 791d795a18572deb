package metal

import (
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/drover-dev/drover/internal/metal/api"
	"github.com/drover-dev/drover/internal/metal/driver"
	"github.com/drover-dev/drover/internal/metal/store"
)

// TestKeysMayEndWithNewline sends a key as "cat id.pub" prints it. Machines get it in one line.
func TestKeysMayEndWithNewline(t *testing.T) {
	fake := newFake()
	w := openWorld(t, Options{Home: Home{Dir: t.TempDir()}, Driver: fake.new, DriverName: "fake"})
	var key api.SSHKey
	w.must(http.StatusCreated, "POST", "/projects/"+w.project+"/ssh-keys", map[string]string{"label": "a", "key": testKey + "\n"}, &key)
	if key.Key != testKey+"\n" || key.Fingerprint == "" || key.Owner == nil || key.Owner.Href != "/projects/"+w.project {
		t.Errorf("got key %+v", key)
	}
	w.refused(http.StatusUnprocessableEntity, "POST", "/projects/"+w.project+"/ssh-keys", map[string]string{"label": "b", "key": testKey})
	w.refused(http.StatusUnprocessableEntity, "POST", "/projects/"+w.project+"/ssh-keys", map[string]string{"label": "c", "key": testKey + "\n" + testKey})
	d := w.create(order("a"))
	w.eventually("the machine has the key", func() bool {
		m, found := fake.has(d.ID)
		return found && slices.Equal(m.SSHKeys, []string{testKey})
	})
}

// TestCustomDataIsAnObject sends custom data in the encodings of all clients. A response with
// anything but an object would break them.
func TestCustomDataIsAnObject(t *testing.T) {
	w := openWorld(t, Options{Home: Home{Dir: t.TempDir()}, Driver: quiet(), DriverName: "quiet"})
	with := func(field string, value any) map[string]any {
		body := order("a")
		body[field] = value
		return body
	}
	for _, field := range []string{"customdata", "storage"} {
		for _, tt := range []struct {
			name string
			sent any
			want string
		}{
			{"an object", map[string]any{"a": 1}, `{"a":1}`},
			{"a string", `{"a": 1}`, `{"a":1}`},
			{"an empty string", "", `{}`},
		} {
			d := w.create(with(field, tt.sent))
			if got := map[string]api.Object{"customdata": d.CustomData, "storage": d.Storage}[field]; string(got) != tt.want {
				t.Errorf("%s as %s was returned as %s", field, tt.name, got)
			}
		}
		for _, wrong := range []any{"not json", "[1]", `"x"`, []int{1}, 7, `{"a":`} {
			w.refused(http.StatusUnprocessableEntity, "POST", "/projects/"+w.project+"/devices", with(field, wrong))
		}
	}
	d := w.create(with("customdata", `{"a":1}`))
	for sent, want := range map[string]string{`{"customdata":"{\"b\":2}"}`: `{"b":2}`, `{"customdata":""}`: `{}`, `{"customdata":null}`: `{}`} {
		w.must(http.StatusOK, "PUT", "/devices/"+d.ID, sent, &d)
		if string(d.CustomData) != want {
			t.Errorf("%s: got %s, want %s", sent, d.CustomData, want)
		}
	}
	w.refused(http.StatusUnprocessableEntity, "PUT", "/devices/"+d.ID, `{"customdata":"no"}`)
	w.refused(http.StatusUnprocessableEntity, "PUT", "/projects/"+w.project, `{"customdata":"no"}`)
	w.refused(http.StatusUnprocessableEntity, "POST", "/projects/"+w.project+"/ips", `{"type":"public_ipv4","quantity":1,"metro":"da","customdata":"no"}`)
}

func TestCustomDataOfEarlierVersionsIsAnObject(t *testing.T) {
	w := openWorld(t, Options{Home: Home{Dir: t.TempDir()}, Driver: quiet(), DriverName: "quiet"})
	d := w.create(order("a"))
	for stored, want := range map[string]string{`"{\"a\":1}"`: `{"a":1}`, `"text"`: `{}`, `[1]`: `{}`} {
		err := w.s.change(d.ID, func(_ *store.Tx, d *store.Device) error {
			d.CustomData, d.Storage = json.RawMessage(stored), json.RawMessage(stored)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if got := w.device(d.ID); string(got.CustomData) != want || string(got.Storage) != want {
			t.Errorf("%s is shown as %s and %s", stored, got.CustomData, got.Storage)
		}
	}
}

// newProject creates a project and uses it from then on.
func (w *world) newProject() {
	w.t.Helper()
	var p api.Project
	w.call(w.admin, "POST", "/projects", map[string]string{"name": "temporary"}, &p)
	w.project, w.token = p.ID, p.Token
}

func (w *world) reserve(quantity int) api.IPReservation {
	w.t.Helper()
	var b api.IPReservation
	w.must(http.StatusCreated, "POST", "/projects/"+w.project+"/ips", map[string]any{"type": "public_ipv4", "quantity": quantity, "metro": "da"}, &b)
	return b
}

// TestProjectsAreDeletedWithContents deletes a project with everything that it can have, while its
// device is being deprovisioned. An address stays with that device until its machine is gone.
func TestProjectsAreDeletedWithContents(t *testing.T) {
	fake := newFake()
	w := openWorld(t, Options{Home: Home{Dir: t.TempDir()}, Driver: fake.new, DriverName: "fake"})
	w.newProject()
	w.reserve(4)
	b := w.reserve(1)
	d := w.create(order("a"))
	w.must(http.StatusCreated, "POST", "/devices/"+d.ID+"/ips", map[string]string{"address": b.Address}, nil)
	w.must(http.StatusCreated, "POST", "/ssh-keys", map[string]string{"label": "a", "key": testKey}, nil)
	w.must(http.StatusNoContent, "POST", "/projects/"+w.project+"/bgp-configs", map[string]any{"deployment_type": "local", "asn": 65000}, nil)
	if got := w.call(w.admin, "DELETE", "/projects/"+w.project, nil, nil); got != http.StatusUnprocessableEntity {
		t.Errorf("a project with a device answered %d", got)
	}
	fake.mu.Lock()
	fake.fail = func(call, _ string) error {
		if call == "remove" {
			return errors.New("not yet")
		}
		return nil
	}
	fake.mu.Unlock()
	w.must(http.StatusNoContent, "DELETE", "/devices/"+d.ID+"?force_delete=true", nil, nil)
	if got := w.call(w.admin, "DELETE", "/projects/"+w.project, nil, nil); got != http.StatusNoContent {
		t.Fatalf("deleting a project with a device: got status %d", got)
	}
	if got := w.call(w.token, "GET", "/projects", nil, nil); got != http.StatusUnauthorized {
		t.Errorf("the token of a deleted project answered %d", got)
	}
	if _, err := os.Stat(w.s.home.TokenFile(w.project)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the file of the token is still there: %v", err)
	}
	if n := w.leftovers(); n != 4 {
		t.Errorf("got %d blocks, want those of the device", n)
	}
	fake.mu.Lock()
	fake.fail = nil
	fake.mu.Unlock()
	w.eventually("everything is gone", func() bool { return w.leftovers() == 0 })
}

// leftovers counts the blocks of the project.
func (w *world) leftovers() int {
	w.t.Helper()
	var found []*store.Block
	err := w.s.store.View(func(tx *store.Tx) (err error) {
		found, err = tx.Blocks().All(func(b *store.Block) bool { return b.ProjectID == w.project })
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return len(found)
}

// TestProjectsCanBeDeletedOnceDevicesAreGone repeats what scripts do: wait for 404, then delete.
func TestProjectsCanBeDeletedOnceDevicesAreGone(t *testing.T) {
	w := newWorld(t)
	for range 30 {
		w.newProject()
		d := w.create(order("a"))
		w.must(http.StatusNoContent, "DELETE", "/devices/"+d.ID+"?force_delete=true", nil, nil)
		w.awaitDeleted(d.ID)
		if got := w.call(w.admin, "DELETE", "/projects/"+w.project, nil, nil); got != http.StatusNoContent {
			t.Fatalf("deleting the project answered %d", got)
		}
	}
}

// TestDeletedProjectsGetNothing deletes a project between the check of a request and its write.
func TestDeletedProjectsGetNothing(t *testing.T) {
	w := openWorld(t, Options{Home: Home{Dir: t.TempDir()}, Driver: quiet(), DriverName: "quiet"})
	w.newProject()
	p := &store.Project{ID: w.project}
	if got := w.call(w.admin, "DELETE", "/projects/"+w.project, nil, nil); got != http.StatusNoContent {
		t.Fatalf("deleting the project answered %d", got)
	}
	c := &call{Server: w.s, r: mustRequest(t, "POST", "/", `{"label":"a","key":"`+testKey+`"}`), who: identity{admin: true}}
	if _, err := c.addSSHKey(p.ID); !errors.Is(err, errNotFound) {
		t.Errorf("a key was added: %v", err)
	}
	o, err := placed("c3.small.x86", "da", "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.place(p, o, &api.DeviceCreate{Hostname: "a", OperatingSystem: "x"}); !errors.Is(err, errNotFound) {
		t.Errorf("a device was created: %v", err)
	}
}

func mustRequest(t *testing.T, method, path, body string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestIncludeReplacesLinks includes objects in single responses and in lists.
func TestIncludeReplacesLinks(t *testing.T) {
	w := newWorld(t)
	e := w.newEstate()
	for path, want := range map[string]string{
		"/devices/" + e.device + "?include=ssh_keys,project":                        `"name":"default"`,
		"/metal/v1/devices/" + e.device + "?include=project":                        `"name":"default"`,
		"/devices/" + e.device + "?include=project.ssh_keys":                        `"label":"a"`,
		"/projects/" + e.project + "/devices?include[]=project":                     `"name":"default"`,
		"/projects/" + e.project + "/bgp-config?include=sessions":                   `"address_family":"ipv4"`,
		"/projects/" + e.project + "?include=devices":                               `"secret-tag"`,
		"/projects?include=ssh_keys,members":                                        `"full_name":"Project"`,
		"/projects/" + e.project + "/ips?include=project,assignments":               `"name":"default"`,
		"/devices/" + e.device + "/events?include=relationships":                    `"secret-tag"`,
		"/plans?include=available_in,available_in_metros":                           `"code":"da11"`,
		"/devices/" + e.device + "?include=a.b.c.d,,nothing,provisioning_events.id": `"mine"`,
	} {
		if _, data, err := w.raw(t.Context(), http.MethodGet, path, ""); err != nil || !strings.Contains(string(data), want) {
			t.Errorf("%s answered %s, %v; want %s", path, data, err, want)
		}
	}
}

// TestIncludeKeepsToTheCaller tries to include what the caller may not read, by links that clients
// can store themselves.
func TestIncludeKeepsToTheCaller(t *testing.T) {
	w := newWorld(t)
	e := w.newEstate()
	w.newProject()
	for _, target := range []string{
		"/devices/" + e.device, "/projects/" + e.project, "/ssh-keys/" + e.key, "/ips/" + e.block, "/events/" + e.event,
		"/drover/v1/devices/" + e.device + "/console?follow=true", "http://127.0.0.1:1/", "//", "/../projects", ":",
	} {
		body := order("b")
		body["customdata"] = map[string]string{"href": target}
		d := w.create(body)
		_, data, err := w.raw(t.Context(), http.MethodGet, "/devices/"+d.ID+"?include=customdata", "")
		if err != nil {
			t.Fatal(err)
		}
		var got struct {
			CustomData map[string]any `json:"customdata"`
		}
		if err := json.Unmarshal(data, &got); err != nil || len(got.CustomData) != 1 {
			t.Errorf("link to %s: got %v, %v, want one key", target, got.CustomData, err)
		}
	}
}

// TestReservedAddressIsTheDevices orders a device with addresses of a reservation.
func TestReservedAddressIsTheDevices(t *testing.T) {
	for name, networks := range map[string]driver.Networks{
		"a block per device": {},
		"a shared network":   {Public: netip.MustParsePrefix("198.18.4.0/24"), Private: netip.MustParsePrefix("10.200.0.0/24"), Flat: true},
	} {
		t.Run(name, func(t *testing.T) {
			fake := newFake()
			fake.networks = networks
			w := openWorld(t, Options{Home: Home{Dir: t.TempDir()}, Driver: fake.new, DriverName: "fake"})
			b := w.reserve(2)
			body := order("a")
			body["ip_addresses"] = []map[string]any{
				{"address_family": 4, "public": false},
				{"address_family": 4, "public": true, "cidr": 31, "ip_reservations": []string{b.ID}},
			}
			d := w.create(body)
			w.eventually("the machine has addresses", func() bool {
				m, found := fake.has(d.ID)
				return found && len(m.Addresses) == 2
			})
			w.must(http.StatusOK, "GET", "/ips/"+b.ID, nil, &b)
			if len(b.Assignments) != 1 || b.Assignments[0].AssignedTo.Href != "/devices/"+d.ID || !b.Assignments[0].Management {
				t.Fatalf("assignments of the reservation: %+v", b.Assignments)
			}
			if m, _ := fake.has(d.ID); m.Addresses[0].IP.String() != b.Assignments[0].Address {
				t.Errorf("the machine has %v, the reservation assigns %s", m.Addresses, b.Assignments[0].Address)
			}
			w.refused(http.StatusUnprocessableEntity, "DELETE", "/ips/"+b.Assignments[0].ID, nil)
			if got := w.refused(http.StatusUnprocessableEntity, "POST", "/projects/"+w.project+"/devices", body); !strings.Contains(got, "No free block") {
				t.Errorf("a used reservation answered %q", got)
			}
			w.must(http.StatusNoContent, "DELETE", "/devices/"+d.ID+"?force_delete=true", nil, nil)
			w.awaitDeleted(d.ID)
			w.must(http.StatusNoContent, "DELETE", "/ips/"+b.ID, nil, nil)
		})
	}
}

func TestReservationsThatDevicesCannotUse(t *testing.T) {
	w := openWorld(t, Options{Home: Home{Dir: t.TempDir()}, Driver: quiet(), DriverName: "quiet"})
	mine := w.reserve(1)
	device := w.create(order("a"))
	var blocks api.IPReservations
	w.must(http.StatusOK, "GET", "/projects/"+w.project+"/ips", nil, &blocks)
	management := blocks.IPAddresses[len(blocks.IPAddresses)-1].ID
	for _, tt := range []struct {
		id, metro string
		public    bool
	}{
		{"11111111-2222-3333-4444-555555555555", "da", true}, {device.ID, "da", true}, {management, "da", false}, {mine.ID, "ny", true}, {mine.ID, "da", false},
	} {
		body := order("b")
		body["metro"] = tt.metro
		body["ip_addresses"] = []map[string]any{{"address_family": 4, "public": tt.public, "ip_reservations": []string{tt.id}}}
		w.refused(http.StatusUnprocessableEntity, "POST", "/projects/"+w.project+"/devices", body)
	}
	body := order("c")
	body["ip_addresses"] = []map[string]any{{"address_family": 4, "public": true, "ip_reservations": []string{mine.ID}}}
	w.newProject()
	w.refused(http.StatusUnprocessableEntity, "POST", "/projects/"+w.project+"/devices", body)
}

// TestEventsOfAllDevices merges the events of devices, newest first.
func TestEventsOfAllDevices(t *testing.T) {
	w := newWorld(t)
	for _, name := range []string{"a", "b", "c"} {
		w.awaitState(w.create(order(name)).ID, StateActive)
	}
	var all, page api.Events
	for { // A device may report an event after it became active.
		all, page = api.Events{}, api.Events{}
		w.must(http.StatusOK, "GET", "/events?per_page=1000", nil, &all)
		w.must(http.StatusOK, "GET", "/projects/"+w.project+"/events?per_page=4&page=2", nil, &page)
		if page.Meta.Total == all.Meta.Total {
			break
		}
	}
	if len(all.Events) != all.Meta.Total || len(all.Events) < 9 {
		t.Fatalf("%d events of %d", len(all.Events), all.Meta.Total)
	}
	for i, e := range all.Events[1:] {
		if e.CreatedAt.After(all.Events[i].CreatedAt.Time) {
			t.Errorf("event %d is newer than the one before it", i+1)
		}
	}
	if len(page.Events) != 4 {
		t.Errorf("page 2 has %d events, want 4", len(page.Events))
	}
	for i, e := range page.Events {
		if e.ID != all.Events[4+i].ID {
			t.Errorf("event %d of page 2 is not event %d of all", i, 4+i)
		}
	}
	var one api.Event
	w.must(http.StatusOK, "GET", "/events/"+all.Events[0].ID, nil, &one)
	if one.ID != all.Events[0].ID || one.Type != all.Events[0].Type {
		t.Errorf("got event %+v", one)
	}
	w.refused(http.StatusNotFound, "GET", "/events/no-uuid", nil)
}

func TestSearchFindsKeys(t *testing.T) {
	w := openWorld(t, Options{Home: Home{Dir: t.TempDir()}, Driver: quiet(), DriverName: "quiet"})
	var key api.SSHKey
	w.must(http.StatusCreated, "POST", "/ssh-keys", map[string]string{"label": "Laptop", "key": testKey}, &key)
	for query, want := range map[string]int{
		"search=laptop": 1, "search=" + key.Fingerprint: 1, "search=desk": 0, "search=": 1, "query=laptop": 1, "query=desk": 0,
	} {
		var out api.SSHKeys
		w.must(http.StatusOK, "GET", "/projects/"+w.project+"/ssh-keys?"+query, nil, &out)
		if len(out.SSHKeys) != want {
			t.Errorf("search %q finds %d keys", query, len(out.SSHKeys))
		}
	}
}

func TestPlansAreFiltered(t *testing.T) {
	w := openWorld(t, Options{Home: Home{Dir: t.TempDir()}, Driver: quiet(), DriverName: "quiet"})
	count := func(query string) int {
		var out struct{ Plans []api.Plan }
		w.must(http.StatusOK, "GET", "/plans"+query, nil, &out)
		return len(out.Plans)
	}
	if all, spot := count(""), count("?deployment_type=spot_market"); spot == 0 || spot >= all {
		t.Errorf("%d of %d plans are on the spot market", spot, all)
	}
	if count("?deployment_type=unknown") != 0 || count("?slug=c3.small.x86") != 1 {
		t.Error("a filter has no effect")
	}
}

func TestUserOfToken(t *testing.T) {
	w := openWorld(t, Options{Home: Home{Dir: t.TempDir()}, Driver: quiet(), DriverName: "quiet"})
	var mine, admin api.User
	w.must(http.StatusOK, "GET", "/user", nil, &mine)
	w.call(w.admin, "GET", "/user", nil, &admin)
	if mine.ID == admin.ID || mine.DefaultProjectID == nil || *mine.DefaultProjectID != w.project || mine.DefaultOrganizationID != admin.DefaultOrganizationID {
		t.Errorf("users %+v and %+v", mine, admin)
	}
	w.must(http.StatusOK, "GET", "/organizations/"+mine.DefaultOrganizationID+"/projects", nil, nil)
	w.refused(http.StatusNotFound, "GET", "/organizations/"+mine.ID, nil)
	w.refused(http.StatusNotFound, "GET", "/users/"+admin.ID, nil)
}

func TestMayAnnounce(t *testing.T) {
	w := openWorld(t, Options{Home: Home{Dir: t.TempDir()}, Driver: quiet(), DriverName: "quiet"})
	d, other := w.create(order("a")), w.create(order("b"))
	mine := netip.MustParseAddr(w.reserve(1).Address)
	w.must(http.StatusNoContent, "POST", "/projects/"+w.project+"/bgp-configs", map[string]any{"deployment_type": "local", "asn": 65000}, nil)
	if w.s.MayAnnounce(d.ID, mine) {
		t.Error("a device without a session may announce")
	}
	var session api.BGPSession
	w.must(http.StatusCreated, "POST", "/devices/"+d.ID+"/bgp/sessions", map[string]string{"address_family": "ipv4"}, &session)
	if !w.s.MayAnnounce(d.ID, mine) {
		t.Error("a device with a session may not announce")
	}
	var addresses api.IPAssignments
	w.must(http.StatusOK, "GET", "/devices/"+other.ID+"/ips", nil, &addresses)
	w.newProject()
	foreign := netip.MustParseAddr(w.reserve(1).Address)
	for name, a := range map[string]netip.Addr{
		"another device": netip.MustParseAddr(addresses.IPAddresses[0].Address), "another project": foreign, "nobody": netip.MustParseAddr("192.0.2.1"), "no family": {},
	} {
		if w.s.MayAnnounce(d.ID, a) {
			t.Errorf("a device may announce the address of %s", name)
		}
	}
	if w.s.MayAnnounce("missing", mine) || w.s.MayAnnounce(other.ID, mine) {
		t.Error("a device without a session may announce")
	}
	if got := w.call(w.admin, "DELETE", "/bgp/sessions/"+session.ID, nil, nil); got != http.StatusNoContent || w.s.MayAnnounce(d.ID, mine) {
		t.Errorf("a deleted session still counts (%d)", got)
	}
}
