package metal

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"github.com/drover-dev/drover/internal/base/text"
	"github.com/drover-dev/drover/internal/metal/driver"
	"github.com/drover-dev/drover/internal/metal/store"
)

// provisioningSteps are the steps of every device, in order. Step n is reported as provisioning.10n
// and completes n tenths.
var provisioningSteps = []string{
	"Provisioning started",
	"Network configured",
	"Configuration written, restarting device",
	"Connected to the install system",
	"Server partitions created",
	"Operating system packages installed",
	"Server networking interfaces configured",
	"Cloud-init packages installed and configured",
	"Installation finished, rebooting server",
	"Device phoned home and is ready to go",
}

// stepOf returns the number of a provisioning step, or 0.
func stepOf(kind string) int {
	n, err := strconv.Atoi(strings.TrimPrefix(kind, "provisioning."))
	if err != nil || !strings.HasPrefix(kind, "provisioning.") || n <= 100 || n > 100+len(provisioningSteps) {
		return 0
	}
	return n - 100
}

func stepName(step int) string { return "provisioning." + strconv.Itoa(100+step) }

const (
	// maxEventType and maxMessage bound what a device keeps of a report. Root on a machine chooses
	// both.
	maxEventType = 64
	maxMessage   = 4 << 10
)

// bound limits a report to what a device may keep. A machine may have written it at a time that it
// made up.
func bound(e driver.Event, now time.Time) driver.Event {
	e.Type, e.Message = text.TruncateTo(e.Type, maxEventType), text.TruncateTo(e.Message, maxMessage)
	if e.Time.After(now) || e.Time.Before(time.Unix(0, 0)) {
		e.Time = now
	}
	return e
}

// observe applies a driver's report to a device and returns the new events. It returns false if the
// report contains nothing new.
func observe(d *store.Device, e driver.Event) (events []store.Event, changed bool) {
	if d.State == StateDeprovisioning {
		return nil, false
	}
	before := d.State
	d.State = advance(d.State, e.Phase)
	if e.Phase == driver.Stopped && d.Cycle {
		d.Cycle, d.State = false, StatePoweringOn
	}
	step := stepOf(e.Type)
	if e.Phase == driver.Running && d.State == StateActive {
		step = len(provisioningSteps)
	}
	changed = d.State != before
	if reached := reach(d, step, e.Time); len(reached) > 0 {
		events, changed = append(events, reached...), true
	}
	if percent := max(d.Percent, min(e.Percent, 100)); percent != d.Percent && step > 0 {
		d.Percent, changed = percent, true
	}
	if plain := other(before, d.State, e); plain.Type != "" {
		events, changed = append(events, plain), true
	}
	switch e.Type {
	case userStateEvent:
		d.UserState = userStateOf(e.Message)
	case driver.UserdataClosed:
		if d.Userdata == store.UserdataServed {
			d.Userdata = store.UserdataClosed
		}
	}
	return events, changed
}

// userStateEvent is the type of events by which a machine reports its own setup: "running",
// "succeeded" or "failed", and a message.
const userStateEvent = "user-state"

func userStateOf(message string) *store.UserState {
	state, words, _ := strings.Cut(message, ":")
	return &store.UserState{State: state, Message: strings.TrimSpace(words)}
}

// reach marks all steps up to the given one as done, because a driver may skip some.
func reach(d *store.Device, step int, at time.Time) []store.Event {
	var events []store.Event
	for n := len(d.Steps) + 1; n <= step; n++ {
		d.Steps = append(d.Steps, at)
		d.Percent = n * 100 / len(provisioningSteps)
		events = append(events, store.Event{Type: stepName(n), Body: provisioningSteps[n-1], Time: at})
	}
	return events
}

// other returns the event for a report that is not a provisioning step.
func other(before, after string, e driver.Event) store.Event {
	kind, body := e.Type, e.Message
	if stepOf(kind) > 0 {
		kind = ""
	}
	if kind == "" && before != after {
		switch {
		case after == StateInactive:
			kind, body = "power.203", cmp.Or(body, "Device is powered off")
		case after == StateFailed:
			kind, body = "provisioning.failed", cmp.Or(body, "Provisioning failed")
		case after == StateActive && before != StateProvisioning && before != StateQueued && before != StateReinstalling:
			kind, body = "power.201", cmp.Or(body, "Device is powered on")
		}
	}
	return store.Event{Type: kind, Body: body, Time: e.Time}
}

// restart resets the provisioning of a device that is reinstalled.
func restart(d *store.Device) {
	d.Steps, d.Percent, d.UserState, d.Userdata = nil, 0, nil, store.UserdataServed
}
