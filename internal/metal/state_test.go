package metal

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-dev/drover/internal/metal/driver"
	"github.com/drover-dev/drover/internal/metal/store"
)

func TestAdvance(t *testing.T) {
	tests := map[string]struct {
		state string
		phase driver.Phase
		want  string
	}{
		"a queued device begins to be provisioned":             {StateQueued, driver.Provisioning, StateProvisioning},
		"a provisioned device becomes active":                  {StateProvisioning, driver.Running, StateActive},
		"provisioning can fail":                                {StateProvisioning, driver.Failed, StateFailed},
		"a machine that comes back after a restart is active":  {StateActive, driver.Provisioning, StateActive},
		"a reinstall stays one while it is under way":          {StateReinstalling, driver.Provisioning, StateReinstalling},
		"a reinstall ends active":                              {StateReinstalling, driver.Running, StateActive},
		"power off ends inactive":                              {StatePoweringOff, driver.Stopped, StateInactive},
		"a late word of running does not undo a power off":     {StatePoweringOff, driver.Running, StatePoweringOff},
		"a machine that went off by itself is inactive":        {StateActive, driver.Stopped, StateInactive},
		"power on ends active":                                 {StatePoweringOn, driver.Running, StateActive},
		"a late word of off does not undo a power on":          {StatePoweringOn, driver.Stopped, StatePoweringOn},
		"a deprovisioning device ignores reports":              {StateDeprovisioning, driver.Running, StateDeprovisioning},
		"a device that goes away cannot fail":                  {StateDeprovisioning, driver.Failed, StateDeprovisioning},
		"an event without a phase changes nothing":             {StateActive, "", StateActive},
		"powering off during provisioning does not end it":     {StateProvisioning, driver.Stopped, StateProvisioning},
		"a machine that failed and runs after all is active":   {StateFailed, driver.Running, StateActive},
		"a failed machine stays failed while it tries further": {StateFailed, driver.Provisioning, StateFailed},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := advance(tt.state, tt.phase); got != tt.want {
				t.Errorf("advance(%s, %s) = %s, want %s", tt.state, tt.phase, got, tt.want)
			}
		})
	}
}

func TestAct(t *testing.T) {
	tests := map[string]struct {
		state, action string
		want          string // the state; empty means nothing to do
		refused       bool
	}{
		"an active device can be powered off":      {state: StateActive, action: "power_off", want: StatePoweringOff},
		"an inactive device can be powered on":     {state: StateInactive, action: "power_on", want: StatePoweringOn},
		"powering on what is on does nothing":      {state: StateActive, action: "power_on"},
		"powering off what is off does nothing":    {state: StateInactive, action: "power_off"},
		"a power off can be taken back":            {state: StatePoweringOff, action: "power_on", want: StatePoweringOn},
		"a device that is being made has no power": {state: StateProvisioning, action: "power_off", refused: true},
		"only an active device can be rebooted":    {state: StateInactive, action: "reboot", refused: true},
		"a reboot goes through off":                {state: StateActive, action: "reboot", want: StatePoweringOff},
		"a failed device can be reinstalled":       {state: StateFailed, action: "reinstall", want: StateReinstalling},
		"a reinstall is not begun twice":           {state: StateReinstalling, action: "reinstall"},
		"a rescue works on a device that is off":   {state: StateInactive, action: "rescue", want: StatePoweringOff},
		"a device that goes away cannot be used":   {state: StateDeprovisioning, action: "power_on", refused: true},
		"an unknown action is refused":             {state: StateActive, action: "explode", refused: true},
		"an empty action is refused":               {state: StateActive, action: "", refused: true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := act(tt.state, tt.action)
			if (err != nil) != tt.refused {
				t.Fatalf("err = %v, want refused %v", err, tt.refused)
			}
			if err == nil && got.to != tt.want {
				t.Errorf("to = %q, want %q", got.to, tt.want)
			}
		})
	}
}

func TestMayDelete(t *testing.T) {
	for name, tt := range map[string]struct {
		state         string
		locked, force bool
		refused       bool
	}{
		"an active device may be deleted":               {state: StateActive},
		"a failed device may be deleted":                {state: StateFailed},
		"a device that is being made is protected":      {state: StateProvisioning, refused: true},
		"force overrules that":                          {state: StateProvisioning, force: true},
		"a locked device is protected":                  {state: StateActive, locked: true, refused: true},
		"force does not overrule a lock":                {state: StateActive, locked: true, force: true, refused: true},
		"a device that is going away may be gone twice": {state: StateDeprovisioning},
	} {
		t.Run(name, func(t *testing.T) {
			if err := mayDelete(tt.state, tt.locked, tt.force); (err != nil) != tt.refused {
				t.Errorf("err = %v, want refused %v", err, tt.refused)
			}
		})
	}
}

func TestChoose(t *testing.T) {
	now := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	tests := map[string]struct {
		device *store.Device
		want   choice
	}{
		"a machine without a device is a leftover":            {nil, choice{step: stepRemove}},
		"a deleted device is removed":                         {&store.Device{Deleting: true, HoldUntil: now.Add(time.Hour)}, choice{step: stepRemove}},
		"a held device waits":                                 {&store.Device{Power: "on", HoldUntil: now.Add(time.Hour)}, choice{step: stepWait, wait: time.Hour}},
		"a clock that was ahead holds no device":              {&store.Device{Power: "on", Created: now.AddDate(1, 0, 0), HoldUntil: now.AddDate(1, 0, 1)}, choice{step: stepEnsure, power: driver.On}},
		"a doomed device fails when its time has come":        {&store.Device{Power: "on", Doomed: true, HoldUntil: now}, choice{step: stepFail}},
		"a failed device is left alone":                       {&store.Device{Power: "on", Doomed: true, State: StateFailed}, choice{step: stepNothing}},
		"a device is powered as wanted":                       {&store.Device{Power: "off", State: StatePoweringOff}, choice{step: stepEnsure, power: driver.Off}},
		"a reboot powers off first":                           {&store.Device{Power: "on", Cycle: true}, choice{step: stepEnsure, power: driver.Off}},
		"a reinstall is asked for before anything else":       {&store.Device{Power: "on", Reinstall: true}, choice{step: stepReinstall}},
		"a device ends when its time is over":                 {&store.Device{Power: "on", TerminationTime: now}, choice{step: stepTerminate}},
		"a device with a termination time is reconciled then": {&store.Device{Power: "on", TerminationTime: now.Add(time.Minute)}, choice{step: stepEnsure, power: driver.On, wait: time.Minute}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, choose(tt.device, now), cmp.AllowUnexported(choice{})); diff != "" {
				t.Errorf("choose (-want +got):\n%s", diff)
			}
		})
	}
}

func TestObserve(t *testing.T) {
	at := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	provisioning := func(n int) *store.Device {
		d := &store.Device{State: StateProvisioning}
		reach(d, n, at)
		return d
	}
	tests := map[string]struct {
		device  *store.Device
		event   driver.Event
		state   string
		percent int
		types   []string
	}{
		"a step is an event": {
			provisioning(1), driver.Event{Phase: driver.Provisioning, Type: "provisioning.102"}, StateProvisioning, 20, []string{"provisioning.102"},
		},
		"skipped steps are caught up": {
			provisioning(1),
			driver.Event{Phase: driver.Provisioning, Type: "provisioning.104"},
			StateProvisioning, 40,
			[]string{"provisioning.102", "provisioning.103", "provisioning.104"},
		},
		"a repeated step is no news": {provisioning(4), driver.Event{Phase: driver.Provisioning, Type: "provisioning.103"}, StateProvisioning, 40, nil},
		"running ends provisioning":  {provisioning(9), driver.Event{Phase: driver.Running}, StateActive, 100, []string{"provisioning.110"}},
		"running again is no news": {
			func() *store.Device { d := provisioning(10); d.State = StateActive; return d }(),
			driver.Event{Phase: driver.Running},
			StateActive, 100, nil,
		},
		"a failure says why": {provisioning(5), driver.Event{Phase: driver.Failed, Message: "no disk"}, StateFailed, 50, []string{"provisioning.failed"}},
		"a reboot goes on when the machine is off": {
			func() *store.Device { d := provisioning(10); d.State, d.Cycle = StatePoweringOff, true; return d }(),
			driver.Event{Phase: driver.Stopped},
			StatePoweringOn, 100, nil,
		},
		"a word of the user's is an event": {provisioning(2), driver.Event{Type: "user-state", Message: "hello"}, StateProvisioning, 20, []string{"user-state"}},
		"a device that goes away hears nothing": {
			&store.Device{State: StateDeprovisioning}, driver.Event{Phase: driver.Running, Type: "user-state"}, StateDeprovisioning, 0, nil,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			events, changed := observe(tt.device, tt.event)
			var types []string
			for _, e := range events {
				types = append(types, e.Type)
			}
			if diff := cmp.Diff(tt.types, types); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
			if tt.device.State != tt.state || tt.device.Percent != tt.percent {
				t.Errorf("%s %d%%, want %s %d%%", tt.device.State, tt.device.Percent, tt.state, tt.percent)
			}
			if len(events) > 0 && !changed {
				t.Error("there are events, but no change")
			}
		})
	}
}

func TestMachineReportsAreStored(t *testing.T) {
	for message, want := range map[string]store.UserState{
		"succeeded":               {State: "succeeded"},
		"failed: runcmd: exit: 1": {State: "failed", Message: "runcmd: exit: 1"},
	} {
		d := &store.Device{State: StateActive}
		observe(d, driver.Event{Type: userStateEvent, Message: message})
		if d.UserState == nil || *d.UserState != want {
			t.Errorf("%q is kept as %+v, want %+v", message, d.UserState, want)
		}
	}
}
