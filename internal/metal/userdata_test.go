package metal

import (
	"net/http"
	"strings"
	"testing"

	"github.com/drover-dev/drover/internal/metal/api"
	"github.com/drover-dev/drover/internal/metal/driver"
	"github.com/drover-dev/drover/internal/metal/store"
)

// caKey stands for the keys in the userdata of a control plane machine.
const caKey = "#cloud-config\n# ca.key: secret\n"

// userdataPaths are all ways to the userdata on the metadata service.
var userdataPaths = []string{"/userdata", "/2009-04-04/user-data", "/latest/user-data"}

func newUserdataWorld(t *testing.T) (*world, *fakeDriver, api.Device) {
	t.Helper()
	fake := newFake()
	w := openWorld(t, Options{Home: Home{Dir: t.TempDir()}, Driver: fake.new, DriverName: "fake"})
	body := order("cp-1")
	body["userdata"] = caKey
	d := w.create(body)
	w.eventually("the driver has the machine", func() bool { return fake.poweredAs(d.ID, driver.On) })
	return w, fake, d
}

// stored returns the userdata in the store.
func (w *world) stored(id string) string {
	var data []byte
	_ = w.s.store.View(func(tx *store.Tx) error {
		data = tx.Userdata(id)
		return nil
	})
	return string(data)
}

// leaks returns the places that still reveal the userdata.
func (w *world) leaks(id string) []string {
	w.t.Helper()
	var places []string
	at := publicAddress(w, id)
	for _, path := range userdataPaths {
		if res := w.ask(at, "GET", path, ""); res.Code != http.StatusNotFound || strings.Contains(res.Body.String(), "secret") {
			places = append(places, path)
		}
	}
	for _, path := range []string{"/devices/" + id, "/projects/" + w.project + "/devices", "/drover/v1/devices", "/drover/v1/devices/" + id} {
		var raw any
		w.must(http.StatusOK, "GET", path, nil, &raw)
		if holds(raw, "secret") {
			places = append(places, path)
		}
	}
	if w.stored(id) != "" {
		places = append(places, "the store")
	}
	return places
}

// holds reports whether a string of a decoded JSON value contains a word.
func holds(v any, word string) bool {
	switch v := v.(type) {
	case string:
		return strings.Contains(v, word)
	case []any:
		for _, item := range v {
			if holds(item, word) {
				return true
			}
		}
	case map[string]any:
		for _, item := range v {
			if holds(item, word) {
				return true
			}
		}
	}
	return false
}

func TestUserdataIsDeletedAfterFirstBoot(t *testing.T) {
	for name, end := range map[string]func(*world, *fakeDriver, string){
		"the driver reports success": func(_ *world, f *fakeDriver, id string) {
			f.sink.Report(id, driver.Event{Type: "user-state", Message: "succeeded: done"})
		},
		"the driver reports failure": func(_ *world, f *fakeDriver, id string) {
			f.sink.Report(id, driver.Event{Type: "user-state", Message: "failed: kubeadm"})
		},
		"the machine itself reports success": func(w *world, _ *fakeDriver, id string) {
			w.ask(publicAddress(w, id), "POST", "/user-state", `{"state":"succeeded"}`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, fake, d := newUserdataWorld(t)
			fake.sink.Report(d.ID, driver.Event{Phase: driver.Running})
			fake.sink.Report(d.ID, driver.Event{Type: "user-state", Message: "running: executing the userdata"})
			at := publicAddress(w, d.ID)
			for _, path := range userdataPaths {
				if got := w.ask(at, "GET", path, "").Body.String(); got != caKey {
					t.Errorf("during the first boot %s is %q", path, got)
				}
			}
			end(w, fake, d.ID)
			if places := w.leaks(d.ID); len(places) > 0 {
				t.Errorf("after the first boot userdata is still in %q", places)
			}
			w.close()
			w = openWorld(t, Options{Home: w.home, Driver: fake.new, DriverName: "fake"})
			if places := w.leaks(d.ID); len(places) > 0 {
				t.Errorf("after a restart of metal userdata is still in %q", places)
			}
			if got := w.ask(at, "GET", "/2009-04-04/meta-data/instance-id", "").Body.String(); got != d.ID {
				t.Errorf("metadata without userdata is %q", got)
			}
		})
	}
}

// TestRestartDeletesUserdataOfOlderVersions starts metal on a store in which the boot has ended and
// the userdata exists: an older version never deleted it.
func TestRestartDeletesUserdataOfOlderVersions(t *testing.T) {
	w, fake, d := newUserdataWorld(t)
	err := w.s.store.Update(func(tx *store.Tx) error {
		old, err := tx.Devices().Get(d.ID)
		if err != nil {
			return err
		}
		old.State, old.UserState = StateActive, &store.UserState{State: "succeeded"}
		return tx.Devices().Put(old)
	})
	if err != nil {
		t.Fatal(err)
	}
	w.close()
	w = openWorld(t, Options{Home: w.home, Driver: fake.new, DriverName: "fake"})
	w.eventually("the userdata is deleted", func() bool { return len(w.leaks(d.ID)) == 0 })
}

func TestUserdataIsNotServedOnceTheKubeletRuns(t *testing.T) {
	w, fake, d := newUserdataWorld(t)
	fake.sink.Report(d.ID, driver.Event{Type: driver.UserdataClosed, Message: "The kubelet starts"})
	for _, path := range userdataPaths {
		if res := w.ask(publicAddress(w, d.ID), "GET", path, ""); res.Code != http.StatusNotFound {
			t.Errorf("a Pod in the machine's network gets %d %q from %s", res.Code, res.Body, path)
		}
	}
	if w.stored(d.ID) != caKey {
		t.Error("a machine that is interrupted in its first boot has lost its userdata")
	}
}

func TestReinstallRequiresUserdataAgain(t *testing.T) {
	w, fake, d := newUserdataWorld(t)
	fake.sink.Report(d.ID, driver.Event{Phase: driver.Running})
	fake.sink.Report(d.ID, driver.Event{Type: "user-state", Message: "succeeded"})
	reinstall := map[string]string{"type": "reinstall"}
	if got := w.refused(http.StatusUnprocessableEntity, "POST", "/devices/"+d.ID+"/actions", reinstall); !strings.Contains(got, "update the device with the userdata") {
		t.Errorf("the advice is %q", got)
	}
	w.must(http.StatusOK, "PUT", "/devices/"+d.ID, map[string]string{"userdata": "#!/bin/sh\n# next\n"}, nil)
	at := publicAddress(w, d.ID)
	if got := w.ask(at, "GET", "/userdata", "").Code; got != http.StatusNotFound {
		t.Errorf("before the reinstallation its userdata is served: %d", got)
	}
	w.must(http.StatusAccepted, "POST", "/devices/"+d.ID+"/actions", reinstall, nil)
	w.eventually("the driver reinstalls with the new userdata", func() bool {
		m, _ := fake.has(d.ID)
		return strings.Contains(string(m.Userdata), "next")
	})
	if got := w.ask(at, "GET", "/userdata", "").Code; got != http.StatusOK {
		t.Errorf("during the reinstallation userdata is answered %d", got)
	}
	fake.sink.Report(d.ID, driver.Event{Phase: driver.Running})
	fake.sink.Report(d.ID, driver.Event{Type: "user-state", Message: "succeeded"})
	if got := w.stored(d.ID); got != "" {
		t.Errorf("after the reinstallation the store has %q", got)
	}
}
