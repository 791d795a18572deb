package metal

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/drover-dev/drover/internal/metal/api"
	"github.com/drover-dev/drover/internal/metal/driver"
	"github.com/drover-dev/drover/internal/metal/inventory"
	"github.com/drover-dev/drover/internal/metal/request"
)

// powerTimeout bounds how long a server may take to accept that it is to shut down.
const powerTimeout = time.Minute

// powerServer changes the power state of a server: of its device if it has one, so that metal
// remembers what was asked for, otherwise of the server itself.
func powerServer(c *call) (*reply, error) {
	var req api.ServerPower
	if err := c.decode(&req); err != nil {
		return nil, err
	}
	device := map[string]string{api.ServerOn: actionPowerOn, api.ServerOff: actionPowerOff, api.ServerReboot: actionReboot}[req.State]
	if device == "" {
		return nil, request.Unprocessable(fmt.Sprintf("state %.80q is unknown: use on, off or reboot", req.State))
	}
	s, err := c.findServer()
	if err != nil {
		return nil, err
	}
	if s.Held() {
		if err := c.act(s.DeviceID, &api.DeviceAction{Type: device}); err != nil {
			return nil, err
		}
		return c.okServer(s)
	}
	return c.onServer(func(id string) (*inventory.Server, error) { return c.inspections.power(c.r.Context(), id, req.State) })
}

// power shuts a server down that no device has, or restarts it. Until it is checked again, it is
// given to no machine.
func (i *inspections) power(ctx context.Context, id, state string) (*inventory.Server, error) {
	defer i.store.Lock("server/" + id)()
	server, target, err := i.target(id)
	operator, able := i.driver.(driver.Operator)
	switch {
	case err != nil:
		return nil, err
	case !able:
		return nil, request.Unprocessable("The driver can't change the power state of servers")
	case state == api.ServerOn:
		return nil, request.Unprocessable(fmt.Sprintf("Without a management controller, nothing can turn on server %q: press its power button, then run `drover server check %[1]s`", server.Name))
	case server.SSH == nil:
		return nil, request.Unprocessable("The server has no SSH access")
	}
	action, message := driver.ShutDown, "the server was shut down"
	if state == api.ServerReboot {
		action, message = driver.Restart, "the server was restarted"
	}
	server, err = i.recordPower(id, message)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, powerTimeout)
	defer cancel()
	if err := operator.PowerServer(ctx, *target, action); err != nil {
		_, failed := i.recordPower(id, fmt.Sprintf("the command %s failed: %v", action, err))
		return nil, errors.Join(request.Unprocessable(fmt.Sprintf("%s of server %q failed: %v", action, server.Name, err)), failed)
	}
	return server, nil
}

// recordPower takes a server out of use until it is checked.
func (i *inspections) recordPower(id, message string) (*inventory.Server, error) {
	return i.changeServer(id, func(s *inventory.Server) error {
		if s.Held() {
			return &inventory.TransitionError{Server: s.Name, Action: "shut down by itself", State: s.State, Remedy: "a machine has it by now; try again"}
		}
		s.RecordInspection(driver.Facts{}, []driver.Problem{{
			Check: "power", Message: message, Remedy: "once it is on, run `drover server check " + s.Name + "`",
		}}, i.now())
		return nil
	})
}

// serverConsole streams the log of a server, whether or not a device has it.
func serverConsole(c *call) (*reply, error) {
	s, err := c.findServer()
	if err != nil {
		return nil, err
	}
	operator, able := c.driver.(driver.Operator)
	switch {
	case !able:
		return nil, request.Unprocessable("The driver can't read the log of servers")
	case s.SSH == nil:
		return nil, request.Unprocessable("The server has no SSH access")
	}
	_, target, err := c.inspections.target(s.ID)
	if err != nil {
		return nil, err
	}
	in, err := operator.ServerConsole(c.r.Context(), *target, c.r.URL.Query().Get("follow") == "true")
	if err != nil {
		return nil, request.Unprocessable(fmt.Sprintf("Reading the log of server %q failed: %v", s.Name, err))
	}
	return streamed(in), nil
}
