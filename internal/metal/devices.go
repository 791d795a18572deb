package metal

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/drover-dev/drover/internal/metal/api"
	"github.com/drover-dev/drover/internal/metal/request"
	"github.com/drover-dev/drover/internal/metal/store"
)

// listDevices lists one page of the devices of a project.
func listDevices(c *call) (*reply, error) {
	p, err := c.project()
	if err != nil {
		return nil, err
	}
	return c.devicePage(p.ID)
}

// listAllDevices lists all devices that the caller may access. It is an extension of the API.
func listAllDevices(c *call) (*reply, error) { return c.devicePage(c.who.project) }

func (c *call) devicePage(project string) (*reply, error) {
	pg, err := c.paged(defaultPerPage)
	if err != nil {
		return nil, err
	}
	q := deviceQuery(c.r.URL.Query())
	q.Project = project
	ids, total := c.store.Devices().Page(q, pg.offset(), pg.size)
	out := api.Devices{Devices: make([]api.Device, 0, len(ids)), Meta: pg.meta(total)}
	bare := excludes(c.r, "userdata")
	err = c.store.View(func(tx *store.Tx) error {
		for _, id := range ids {
			d, err := tx.Devices().Get(id)
			if errors.Is(err, store.ErrNotFound) {
				continue // Deleted since the index was read.
			}
			if err != nil {
				return err
			}
			userdata := ""
			if !bare {
				userdata = string(tx.Userdata(id))
			}
			out.Devices = append(out.Devices, c.renderDevice(d, userdata))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return ok(out)
}

// deviceQuery translates the filters of a request into an index query.
func deviceQuery(v url.Values) store.Query {
	q := store.Query{Search: v.Get("search")}
	for _, key := range []string{"hostname", "metro", "facility", "plan", "reserved"} {
		if value := v.Get(key); value != "" {
			q.Terms = append(q.Terms, key+":"+strings.ToLower(value))
		}
	}
	if tag := v.Get("tag"); tag != "" {
		q.Terms = append(q.Terms, "tag:"+tag)
	}
	if id := v.Get("hardware_reservation_id"); id != "" {
		q.Terms = append(q.Terms, "reservation:"+id)
	}
	if ip := v.Get("ip_address"); ip != "" {
		q.Terms = append(q.Terms, "ip:"+ip)
	}
	return q
}

func excludes(r *http.Request, field string) bool {
	return slices.Contains(strings.Split(r.URL.Query().Get("exclude"), ","), field)
}

func getDevice(c *call) (*reply, error) {
	d, err := c.device()
	if err != nil {
		return nil, err
	}
	return ok(c.withUserdata(d))
}

// withUserdata renders a device including its userdata.
func (c *call) withUserdata(d *store.Device) api.Device {
	var userdata []byte
	_ = c.store.View(func(tx *store.Tx) error {
		userdata = tx.Userdata(d.ID)
		return nil
	})
	return c.renderDevice(d, string(userdata))
}

func updateDevice(c *call) (*reply, error) {
	d, err := c.device()
	if err != nil {
		return nil, err
	}
	var req api.DeviceUpdate
	if err := c.decode(&req); err != nil {
		return nil, err
	}
	if err := request.CheckUpdate(&req); err != nil {
		return nil, err
	}
	err = c.change(d.ID, func(tx *store.Tx, fresh *store.Device) error {
		d = fresh
		if req.Userdata != nil {
			if err := replaceUserdata(tx, d, *req.Userdata); err != nil {
				return err
			}
		}
		applyUpdate(d, &req)
		return nil
	})
	if err != nil {
		return nil, notFound(err)
	}
	c.devices.enqueue(d.ID)
	return ok(c.withUserdata(d))
}

func applyUpdate(d *store.Device, req *api.DeviceUpdate) {
	set(&d.Hostname, req.Hostname)
	set(&d.Description, req.Description)
	set(&d.Locked, req.Locked)
	set(&d.Tags, req.Tags)
	set(&d.AlwaysPXE, req.AlwaysPXE)
	set(&d.IPXEScriptURL, req.IPXEScriptURL)
	set(&d.BillingCycle, req.BillingCycle)
	set(&d.SpotInstance, req.SpotInstance)
	if req.CustomData != nil {
		d.CustomData = json.RawMessage(req.CustomData)
	}
}

// set overwrites a field if the request has a value for it.
func set[T any](field, value *T) {
	if value != nil {
		*field = *value
	}
}

// deleteDevice records that the device is to be deleted. It keeps its addresses until the driver
// has removed the machine.
func deleteDevice(c *call) (*reply, error) {
	d, err := c.device()
	if err != nil {
		return nil, err
	}
	force, err := c.forced()
	if err != nil {
		return nil, err
	}
	err = c.change(d.ID, func(tx *store.Tx, d *store.Device) error {
		if err := mayDelete(d.State, d.Locked, force); err != nil {
			return err
		}
		return c.markDeleted(tx, d)
	})
	if err != nil {
		return nil, notFound(err)
	}
	c.devices.enqueue(d.ID)
	return noContent()
}

// forced reports whether force_delete is set in the query or in the body; clients use both.
func (c *call) forced() (bool, error) {
	if c.r.URL.Query().Get("force_delete") == "true" {
		return true, nil
	}
	var body api.DeviceDelete
	err := c.decode(&body)
	return body.ForceDelete, err
}

func (s *Server) markDeleted(tx *store.Tx, d *store.Device) error {
	if d.Deleting {
		return errUnchanged
	}
	d.Deleting, d.State = true, StateDeprovisioning
	return s.addEvents(tx, d, []store.Event{{Type: "deprovisioning.101", Body: "Deprovisioning started", Time: s.now()}})
}
