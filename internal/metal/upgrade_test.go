package metal

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/drover-dev/drover/internal/metal/api"
	"github.com/drover-dev/drover/internal/metal/driver"
	"github.com/drover-dev/drover/internal/metal/store"
)

func TestMayUpgrade(t *testing.T) {
	at := func(version string, u *store.Upgrade) *store.Device {
		return &store.Device{State: StateActive, Tags: []string{"kubernetes.io/version:" + version}, Upgrade: u}
	}
	pending := &store.Upgrade{Version: "v1.36.3", State: store.UpgradePending}
	failed := &store.Upgrade{Version: "v1.36.3", State: store.UpgradeFailed}
	done := &store.Upgrade{Version: "v1.36.3", State: store.UpgradeSucceeded}
	off := at("v1.35.4", nil)
	off.State = StateInactive
	tests := map[string]struct {
		device  *store.Device
		version string
		want    string // part of the error; empty means that the upgrade starts
	}{
		"the next minor version":                  {at("v1.35.4", nil), "v1.36.3", ""},
		"a patch":                                 {at("v1.36.1", nil), "v1.36.3", ""},
		"the version that the device is tagged":   {at("v1.36.3", nil), "v1.36.3", ""},
		"a device without a version":              {&store.Device{State: StateActive}, "v1.36.3", ""},
		"one that failed is tried again":          {at("v1.35.4", failed), "v1.36.3", ""},
		"one in progress has no effect":           {at("v1.35.4", pending), "v1.36.3", errUnchanged.Error()},
		"a successful one has no effect":          {at("v1.36.3", done), "v1.36.3", errUnchanged.Error()},
		"another one waits for that in progress":  {at("v1.35.4", pending), "v1.36.4", "is being upgraded to Kubernetes v1.36.3"},
		"an older version":                        {at("v1.36.3", nil), "v1.35.4", "older than"},
		"two minor versions":                      {at("v1.34.0", nil), "v1.36.3", "more than one minor version newer"},
		"a machine that is off":                   {off, "v1.36.3", "Cannot upgrade a device while it is inactive"},
		"something that is no version":            {at("v1.35.4", nil), "$(reboot)", "is not a version"},
		"a version without its v, which tags had": {at("v1.35.4", nil), "1.36.3", "is not a version"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			err := mayUpgrade(tt.device, tt.version)
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

// upgradingDriver upgrades machines with a function.
type upgradingDriver struct {
	*fakeDriver

	upgrade func(ctx context.Context, m driver.Machine, version string) error
}

func (d upgradingDriver) Upgrade(ctx context.Context, m driver.Machine, version string) error {
	return d.upgrade(ctx, m, version)
}

func upgradingWorld(t *testing.T, home string, upgrade func(context.Context, driver.Machine, string) error) *world {
	t.Helper()
	fake := newFake()
	return openWorld(t, Options{Home: Home{Dir: home}, DriverName: "fake", Driver: func(ctx context.Context, c driver.Config) (driver.Driver, error) {
		_, err := fake.new(ctx, c)
		return upgradingDriver{fake, upgrade}, err
	}})
}

// active creates a device and lets it boot.
func (w *world) activeDevice() api.Device {
	w.t.Helper()
	d := w.create(order("m"))
	if err := w.s.Report(d.ID, driver.Event{Phase: driver.Running}); err != nil {
		w.t.Fatal(err)
	}
	return w.awaitState(d.ID, StateActive)
}

func (w *world) awaitUpgrade(id, state string) api.KubernetesUpgrade {
	w.t.Helper()
	var got api.KubernetesUpgrade
	w.eventually("upgrade of "+id+" is "+state, func() bool {
		if u := w.device(id).KubernetesUpgrade; u != nil {
			got = *u
		}
		return got.State == state
	})
	return got
}

const upgradeTo = `{"type": "upgrade", "kubernetes_version": "v1.36.3"}`

// TestProjectsUpgradeTheirDevices tries again after a failure, one upgrade at a time.
func TestProjectsUpgradeTheirDevices(t *testing.T) {
	results := make(chan error)
	w := upgradingWorld(t, t.TempDir(), func(_ context.Context, _ driver.Machine, version string) error {
		if version != "v1.36.3" {
			return errors.New("wrong version " + version)
		}
		return <-results
	})
	d := w.activeDevice()
	if got := w.call(w.token, "POST", "/devices/"+d.ID+"/actions", upgradeTo, nil); got != http.StatusAccepted {
		t.Fatalf("got %d", got)
	}
	results <- errors.New("no space left")
	if got := w.awaitUpgrade(d.ID, "failed"); !strings.Contains(got.Message, "no space left") {
		t.Errorf("got %+v", got)
	}
	for range 2 { // The second has no effect.
		w.call(w.token, "POST", "/devices/"+d.ID+"/actions", upgradeTo, nil)
	}
	results <- nil
	w.awaitUpgrade(d.ID, "succeeded")
	if device := w.device(d.ID); !slices.Contains(device.Tags, "kubernetes.io/version:v1.36.3") {
		t.Errorf("tags %q", device.Tags)
	}
	var events api.Events
	w.call(w.token, "GET", "/devices/"+d.ID+"/events", "", &events)
	var types []string
	for _, e := range events.Events {
		if strings.HasPrefix(e.Type, "upgrade.") {
			types = append(types, e.Type)
		}
	}
	if want := []string{upgradeDone, upgradeRequested, upgradeFailed, upgradeRequested}; !slices.Equal(types, want) {
		t.Errorf("got events %q, want %q", types, want)
	}
}

func TestUpgradesResumeAfterARestart(t *testing.T) {
	home, began := t.TempDir(), make(chan struct{}, 1)
	w := upgradingWorld(t, home, func(ctx context.Context, _ driver.Machine, _ string) error {
		began <- struct{}{}
		<-ctx.Done()
		return ctx.Err()
	})
	d := w.activeDevice()
	w.call(w.token, "POST", "/devices/"+d.ID+"/actions", upgradeTo, nil)
	<-began
	w.close()
	again := upgradingWorld(t, home, func(context.Context, driver.Machine, string) error { return nil })
	again.awaitUpgrade(d.ID, "succeeded")
}

func TestFewMachinesAreUpgradedAtATime(t *testing.T) {
	var running, most atomic.Int32
	release := make(chan struct{})
	w := upgradingWorld(t, t.TempDir(), func(context.Context, driver.Machine, string) error {
		most.Store(max(most.Load(), running.Add(1)))
		defer running.Add(-1)
		<-release
		return nil
	})
	var ids []string
	for range maxUpgrades + 2 {
		d := w.activeDevice()
		ids = append(ids, d.ID)
		w.call(w.token, "POST", "/devices/"+d.ID+"/actions", upgradeTo, nil)
	}
	w.eventually("upgrades have started", func() bool { return running.Load() == maxUpgrades })
	close(release)
	for _, id := range ids {
		w.awaitUpgrade(id, "succeeded")
	}
	if most.Load() > maxUpgrades {
		t.Errorf("%d upgrades at a time", most.Load())
	}
}

func TestRemovedDevicesEndTheirUpgrade(t *testing.T) {
	began, ended := make(chan struct{}, 1), make(chan struct{})
	w := upgradingWorld(t, t.TempDir(), func(ctx context.Context, _ driver.Machine, _ string) error {
		began <- struct{}{}
		<-ctx.Done()
		close(ended)
		return ctx.Err()
	})
	d := w.activeDevice()
	w.call(w.token, "POST", "/devices/"+d.ID+"/actions", upgradeTo, nil)
	<-began
	w.call(w.token, "DELETE", "/devices/"+d.ID, "", nil)
	<-ended
}

func TestUpgradesAreDenied(t *testing.T) {
	w := upgradingWorld(t, t.TempDir(), func(context.Context, driver.Machine, string) error { return nil })
	d := w.activeDevice()
	other, err := w.s.ensureProject("other")
	if err != nil {
		t.Fatal(err)
	}
	const token = "of-another-project"
	if err := w.s.store.Update(func(tx *store.Tx) error { return w.s.putToken(tx, token, other.ID) }); err != nil {
		t.Fatal(err)
	}
	if got := w.call(token, "POST", "/devices/"+d.ID+"/actions", upgradeTo, nil); got != http.StatusNotFound {
		t.Errorf("another project: got %d", got)
	}
	if !w.device(d.ID).KubernetesUpgradable {
		t.Error("the device doesn't show that it can be upgraded in place")
	}
	unable := newHost(t, 1)
	m := unable.create(order("m"))
	if unable.device(m.ID).KubernetesUpgradable {
		t.Error("the device shows that it can be upgraded in place, and its driver can't")
	}
	if got := unable.call(unable.admin, "POST", "/devices/"+m.ID+"/actions", upgradeTo, nil); got != http.StatusNotImplemented {
		t.Errorf("a driver that cannot upgrade: got %d", got)
	}
}
