package metal

import (
	"fmt"
	"net/http"
	"slices"

	"github.com/drover-dev/drover/internal/metal/driver"
	"github.com/drover-dev/drover/internal/metal/request"
)

// States of a device in the API.
const (
	StateQueued         = "queued"
	StateProvisioning   = "provisioning"
	StateDeprovisioning = "deprovisioning"
	StateReinstalling   = "reinstalling"
	StateActive         = "active"
	StateInactive       = "inactive"
	StateFailed         = "failed"
	StatePoweringOn     = "powering_on"
	StatePoweringOff    = "powering_off"
)

// advance returns the state that follows from a driver's report. Reports may be late or repeated,
// so inapplicable ones change nothing.
func advance(state string, phase driver.Phase) string {
	if state == StateDeprovisioning {
		return state
	}
	switch phase {
	case driver.Provisioning:
		if state == StateQueued {
			return StateProvisioning
		}
	case driver.Running:
		if state != StatePoweringOff {
			return StateActive
		}
	case driver.Stopped:
		if state == StatePoweringOff || state == StateActive {
			return StateInactive
		}
	case driver.Failed:
		return StateFailed
	}
	return state
}

// Actions on a device.
const (
	actionPowerOn   = "power_on"
	actionPowerOff  = "power_off"
	actionReboot    = "reboot"
	actionRescue    = "rescue"
	actionReinstall = "reinstall"
)

// transition is the effect of an action on a device.
type transition struct {
	from  []string
	to    string
	power driver.Power
	cycle bool
	event string
	body  string
}

var transitions = map[string]transition{
	actionPowerOn:   {[]string{StateInactive, StatePoweringOff}, StatePoweringOn, driver.On, false, "power.200", "Device power on requested"},
	actionPowerOff:  {[]string{StateActive, StatePoweringOn}, StatePoweringOff, driver.Off, false, "power.202", "Device power off requested"},
	actionReboot:    {[]string{StateActive}, StatePoweringOff, driver.On, true, "power.204", "Device reboot requested"},
	actionRescue:    {[]string{StateActive, StateInactive}, StatePoweringOff, driver.On, true, "rescue.200", "Device rescue requested"},
	actionReinstall: {[]string{StateActive, StateInactive, StateFailed}, StateReinstalling, driver.On, false, "reinstall.200", "Device reinstall requested"},
}

// act decides the effect of an action on a device. An action whose result is already reached or in
// progress has no effect.
func act(state, action string) (transition, error) {
	t, ok := transitions[action]
	if !ok {
		return t, request.Refuse(http.StatusUnprocessableEntity, "%s is not a valid action type", quoted(action))
	}
	if slices.Contains(t.from, state) {
		return t, nil
	}
	if state == t.to || isReached(action, state) {
		return transition{}, nil
	}
	return t, request.Refuse(http.StatusUnprocessableEntity, "Cannot %s a device while it is %s", action, state)
}

func isReached(action, state string) bool {
	return action == actionPowerOn && state == StateActive || action == actionPowerOff && state == StateInactive
}

func quoted(s string) string {
	if s == "" {
		return "An empty type"
	}
	return fmt.Sprintf("%q", s)
}

// mayDelete rejects deleting a locked device, and without force a device that is being provisioned.
func mayDelete(state string, locked, force bool) error {
	switch {
	case locked:
		return request.Unprocessable("Cannot delete a locked device")
	case !force && (state == StateQueued || state == StateProvisioning):
		return request.Unprocessable("Cannot delete a device while it is provisioning")
	case !force && state == StateReinstalling:
		return request.Unprocessable("Cannot delete a device while it is reinstalling")
	default:
		return nil
	}
}
