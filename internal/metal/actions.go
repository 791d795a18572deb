package metal

import (
	"github.com/drover-dev/drover/internal/metal/api"
	"github.com/drover-dev/drover/internal/metal/store"
)

// actOnDevice changes the power state of a device, reinstalls it, or upgrades its Kubernetes.
func actOnDevice(c *call) (*reply, error) {
	d, err := c.device()
	if err != nil {
		return nil, err
	}
	var req api.DeviceAction
	if err := c.decode(&req); err != nil {
		return nil, err
	}
	if req.Type == "" {
		req.Type = c.r.URL.Query().Get("type")
	}
	if req.Type == actionUpgrade {
		return c.upgradeDevice(d.ID, req.KubernetesVersion)
	}
	if err := c.act(d.ID, &req); err != nil {
		return nil, err
	}
	return accepted()
}

// act records an action on a device, which the controller performs.
func (c *call) act(id string, req *api.DeviceAction) error {
	err := c.change(id, func(tx *store.Tx, d *store.Device) error {
		t, err := act(d.State, req.Type)
		if err != nil {
			return err
		}
		if t.to == "" {
			return errUnchanged
		}
		if req.Type == actionReinstall && d.Userdata == store.UserdataDeleted {
			return errUserdataGone
		}
		t.apply(d, req)
		return c.addEvents(tx, d, []store.Event{{Type: t.event, Body: t.body, Time: c.now()}})
	})
	if err != nil {
		return notFound(err)
	}
	c.devices.enqueue(id)
	return nil
}

func (t transition) apply(d *store.Device, req *api.DeviceAction) {
	d.State, d.Power, d.Cycle = t.to, string(t.power), t.cycle
	if req.Type != actionReinstall {
		return
	}
	restart(d)
	d.Reinstall, d.Doomed = true, false
	if req.OperatingSystem != "" {
		d.OS = req.OperatingSystem
	}
	if req.IPXEScriptURL != "" {
		d.IPXEScriptURL = req.IPXEScriptURL
	}
}

// listEvents lists the events of a device, newest first.
func listEvents(c *call) (*reply, error) {
	d, err := c.device()
	if err != nil {
		return nil, err
	}
	pg, err := c.paged(defaultPerPage)
	if err != nil {
		return nil, err
	}
	var events []store.Event
	var total int
	err = c.store.View(func(tx *store.Tx) (err error) {
		events, total, err = tx.Events(d, pg.offset(), pg.size)
		return err
	})
	if err != nil {
		return nil, err
	}
	out := api.Events{Events: make([]api.Event, 0, len(events)), Meta: pg.meta(total)}
	for _, e := range events {
		out.Events = append(out.Events, c.link().event(d, e))
	}
	return ok(out)
}
