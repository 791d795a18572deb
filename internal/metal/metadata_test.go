package metal

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	packet "github.com/packethost/packngo/metadata"

	"github.com/drover-dev/drover/internal/metal/api"
	"github.com/drover-dev/drover/internal/metal/driver"
)

// ask sends a request to the metadata service from an address.
func (w *world) ask(from, method, path, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, "http://metadata.packet.net"+path, strings.NewReader(body))
	r.RemoteAddr = from + ":40000"
	out := httptest.NewRecorder()
	w.s.MetadataHandler().ServeHTTP(out, r)
	return out
}

func TestMachineReadsItsMetadata(t *testing.T) {
	fake := newFake()
	w := openWorld(t, Options{Home: Home{Dir: t.TempDir()}, Driver: fake.new, DriverName: "fake"})
	w.must(http.StatusCreated, "POST", "/ssh-keys", map[string]string{"label": "k", "key": testKey}, nil)
	body := order("node-1", "a", "b")
	body["userdata"] = "#!/bin/sh\n"
	d := w.create(body)
	other := w.create(order("node-2"))
	w.must(http.StatusNoContent, "POST", "/projects/"+w.project+"/bgp-configs", map[string]any{"asn": 65000, "deployment_type": "local"}, nil)
	w.must(http.StatusCreated, "POST", "/devices/"+d.ID+"/bgp/sessions", map[string]any{"address_family": "ipv4"}, nil)
	at := publicAddress(w, d.ID)

	var m packet.CurrentDevice
	if err := json.Unmarshal(w.ask(at, "GET", "/metadata", "").Body.Bytes(), &m); err != nil {
		t.Fatal(err)
	}
	if m.ID != d.ID || m.Hostname != "node-1" || m.Metro != "da" || len(m.SSHKeys) != 1 || len(m.Tags) != 2 || m.Network.BondingMode() != packet.BondingLACP {
		t.Errorf("metadata = %+v", m)
	}
	var used struct {
		BGPNeighbors []struct {
			PeerIPs    []string `json:"peer_ips"`
			CustomerIP string   `json:"customer_ip"`
		} `json:"bgp_neighbors"`
		PhoneHomeURL string `json:"phone_home_url"`
		UserStateURL string `json:"user_state_url"`
	}
	if err := json.Unmarshal(w.ask(at, "GET", "/metadata", "").Body.Bytes(), &used); err != nil {
		t.Fatal(err)
	}
	if len(used.BGPNeighbors) != 1 || len(used.BGPNeighbors[0].PeerIPs) != 2 || used.BGPNeighbors[0].CustomerIP == "" {
		t.Errorf("neighbors = %+v", used.BGPNeighbors)
	}
	for path, want := range map[string]string{
		"/userdata":                                                       "#!/bin/sh\n",
		"/2009-04-04/user-data":                                           "#!/bin/sh\n",
		"/2009-04-04/meta-data/instance-id":                               d.ID,
		"/2009-04-04/meta-data/hostname":                                  "node-1",
		"/2009-04-04/meta-data/public-ipv4":                               at,
		"/2009-04-04/meta-data/tags":                                      "a\nb",
		"/2009-04-04/meta-data/public-keys":                               testKey,
		"/2009-04-04/meta-data/operating-system":                          "distro\nimage-tag\nlicense-activation\nslug\nversion",
		"/2009-04-04/meta-data/operating-system/":                         "distro\nimage-tag\nlicense-activation\nslug\nversion",
		"/2009-04-04/meta-data/operating-system/license-activation/state": "unlicensed",
	} {
		if diff := cmp.Diff(want, w.ask(at, "GET", path, "").Body.String()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", path, diff)
		}
	}
	if list := w.ask(at, "GET", "/2009-04-04/meta-data", "").Body.String(); !strings.Contains(list, "instance-id\n") {
		t.Errorf("the list of items is %q", list)
	}
	if got := w.ask(publicAddress(w, other.ID), "GET", "/2009-04-04/meta-data/instance-id", "").Body.String(); got != other.ID {
		t.Errorf("the other machine got the identity %s", got)
	}
	if got := w.ask("192.0.2.1", "GET", "/metadata", "").Code; got != http.StatusNotFound {
		t.Errorf("a stranger is answered %d", got)
	}
}

func TestMachinePhonesHome(t *testing.T) {
	fake := newFake()
	w := openWorld(t, Options{Home: Home{Dir: t.TempDir()}, Driver: fake.new, DriverName: "fake"})
	d := w.create(order("node-1"))
	w.eventually("it is provisioning", func() bool { return w.device(d.ID).State == StateProvisioning })
	at := publicAddress(w, d.ID)
	if got := w.ask(at, "POST", "/phone-home", "").Code; got != http.StatusOK {
		t.Fatalf("phone home answered %d", got)
	}
	if got := w.device(d.ID); got.State != StateActive || got.ProvisioningPercentage != 100 {
		t.Errorf("after it phoned home the device is %s at %d%%", got.State, got.ProvisioningPercentage)
	}
	for body, want := range map[string]int{
		`{"state":"failed","code":1001,"message":"kubeadm init failed"}`: http.StatusOK,
		`{"state":"dancing"}`:           http.StatusUnprocessableEntity,
		`{"state":"running","code":99}`: http.StatusUnprocessableEntity,
		`{`:                             http.StatusBadRequest,
	} {
		if got := w.ask(at, "POST", "/user-state", body).Code; got != want {
			t.Errorf("user state %s answered %d, want %d", body, got, want)
		}
	}
	var m Machine
	w.must(http.StatusOK, "GET", "/drover/v1/devices/"+d.ID, nil, &m)
	if m.UserState == nil || m.UserState.Message != "kubeadm init failed" {
		t.Errorf("user state = %+v", m.UserState)
	}
}

// TestMachineCannotFillTheStore: root on a machine chooses what it reports.
func TestMachineCannotFillTheStore(t *testing.T) {
	fake := newFake()
	w := openWorld(t, Options{Home: Home{Dir: t.TempDir()}, Driver: fake.new, DriverName: "fake"})
	d := w.create(order("node-1"))
	at, long := publicAddress(w, d.ID), strings.Repeat("x", maxMessage+1)
	if got := w.ask(at, "POST", "/user-state", `{"state":"running","message":"`+long+`"}`).Code; got != http.StatusOK {
		t.Errorf("a long message is answered %d", got)
	}
	if got := w.ask(at, "POST", "/user-state", `{"state":"running","message":"`+strings.Repeat("x", maxGuestBody)+`"}`).Code; got != http.StatusBadRequest {
		t.Errorf("an oversized body is answered %d", got)
	}
	never := time.Date(9999, time.December, 31, 23, 0, 0, 0, time.FixedZone("", -12*60*60))
	if err := fake.sink.Report(d.ID, driver.Event{Type: long, Message: long, Time: never}); err != nil {
		t.Errorf("a long report: %v", err)
	}
	var m Machine
	w.must(http.StatusOK, "GET", "/drover/v1/devices/"+d.ID, nil, &m)
	if m.UserState == nil || len(m.UserState.Message) > maxMessage {
		t.Errorf("user state = %+v", m.UserState)
	}
	var events api.Events
	w.must(http.StatusOK, "GET", "/devices/"+d.ID+"/events", nil, &events)
	for _, e := range events.Events {
		if len(e.Type) > maxEventType || len(e.Body) > 2*maxMessage || e.CreatedAt.After(time.Now()) {
			t.Errorf("an event of %d and %d bytes at %v", len(e.Type), len(e.Body), e.CreatedAt)
		}
	}
	if len(events.Events) < 2 {
		t.Errorf("%d events", len(events.Events))
	}
}

func TestReportsThatAreNotRecordedFail(t *testing.T) {
	fake := newFake()
	w := openWorld(t, Options{Home: Home{Dir: t.TempDir()}, Driver: fake.new, DriverName: "fake"})
	if err := fake.sink.Report("gone", driver.Event{Phase: driver.Running}); err != nil {
		t.Errorf("a report about a removed machine: %v", err)
	}
	d := w.create(order("node-1"))
	if err := w.s.store.Close(); err != nil {
		t.Fatal(err)
	}
	if err := fake.sink.Report(d.ID, driver.Event{Phase: driver.Running}); err == nil {
		t.Error("a report that could not be recorded is no error")
	}
}

func TestReboot(t *testing.T) {
	fake := newFake()
	w := openWorld(t, Options{Home: Home{Dir: t.TempDir()}, Driver: fake.new, DriverName: "fake"})
	d := w.create(order("node-1"))
	w.eventually("it was asked for", func() bool { return fake.poweredAs(d.ID, driver.On) })
	fake.sink.Report(d.ID, driver.Event{Phase: driver.Running})
	w.must(http.StatusAccepted, "POST", "/devices/"+d.ID+"/actions", map[string]string{"type": "reboot"}, nil)
	w.eventually("the machine is asked to go off", func() bool { return fake.poweredAs(d.ID, driver.Off) })
	fake.sink.Report(d.ID, driver.Event{Phase: driver.Stopped})
	w.eventually("the machine is asked to come back", func() bool { return fake.poweredAs(d.ID, driver.On) })
	if got := w.device(d.ID).State; got != StatePoweringOn {
		t.Errorf("during the reboot it is %s", got)
	}
	fake.sink.Report(d.ID, driver.Event{Phase: driver.Running})
	w.awaitState(d.ID, StateActive)
}
