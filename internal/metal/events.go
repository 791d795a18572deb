package metal

import (
	"github.com/google/uuid"

	"github.com/drover-dev/drover/internal/metal/api"
	"github.com/drover-dev/drover/internal/metal/store"
)

// listAllEvents lists the events of all devices that the caller may access, newest first.
func listAllEvents(c *call) (*reply, error) { return c.eventPage(c.who.project) }

func listProjectEvents(c *call) (*reply, error) {
	p, err := c.project()
	if err != nil {
		return nil, err
	}
	return c.eventPage(p.ID)
}

func (c *call) eventPage(project string) (*reply, error) {
	pg, err := c.paged(defaultPerPage)
	if err != nil {
		return nil, err
	}
	var events []store.DeviceEvent
	var total int
	err = c.store.View(func(tx *store.Tx) (err error) {
		events, total, err = tx.LatestEvents(c.store.Devices().All(store.Query{Project: project}), pg.offset(), pg.size)
		return err
	})
	if err != nil {
		return nil, err
	}
	out := api.Events{Events: make([]api.Event, 0, len(events)), Meta: pg.meta(total)}
	for _, e := range events {
		out.Events = append(out.Events, c.link().event(e.Device, e.Event))
	}
	return ok(out)
}

// getEvent finds an event by its ID. Events of other projects are reported as not found.
func getEvent(c *call) (*reply, error) {
	id, err := uuid.Parse(c.r.PathValue("event"))
	if err != nil {
		return nil, errNotFound
	}
	var found store.DeviceEvent
	devices := c.store.Devices().All(store.Query{Project: c.who.project})
	err = c.store.View(func(tx *store.Tx) (err error) {
		found, err = tx.FindEvent(devices, id.String())
		return err
	})
	if err != nil {
		return nil, notFound(err)
	}
	return ok(c.link().event(found.Device, found.Event))
}
