package metal

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/drover-dev/drover/internal/metal/api"
	"github.com/drover-dev/drover/internal/metal/catalog"
	"github.com/drover-dev/drover/internal/metal/request"
	"github.com/drover-dev/drover/internal/metal/store"
)

// nextAvailable requests any free reservation that matches.
const nextAvailable = "next-available"

// claimHardware gives the device a hardware reservation: one of those it names, or the next free
// one. The reservation is claimed in the transaction that records the device, so two devices never
// share one.
func (c *call) claimHardware(tx *store.Tx, d *store.Device, req *api.DeviceCreate) error {
	if len(req.HardwareReservationID) == 0 {
		return nil
	}
	h, err := chooseHardware(tx, d, req.HardwareReservationID)
	if err != nil {
		return err
	}
	h.DeviceID = d.ID
	d.ReservationID, d.Metro, d.Facility = h.ID, h.Metro, h.Facility
	return tx.Hardware().Put(h)
}

func chooseHardware(tx *store.Tx, d *store.Device, wanted []string) (*store.Hardware, error) {
	for _, id := range wanted {
		if id == nextAvailable {
			return nextHardware(tx, d)
		}
		if _, err := uuid.Parse(id); err != nil {
			return nil, request.Unprocessable(id + " is not a valid hardware reservation")
		}
		h, err := tx.Hardware().Get(strings.ToLower(id))
		if errors.Is(err, store.ErrNotFound) || err == nil && h.ProjectID != d.ProjectID {
			return nil, request.Unprocessable(id + " is not a valid hardware reservation")
		}
		if err != nil {
			return nil, err
		}
		if h.DeviceID == "" && fits(h, d) {
			return h, nil
		}
	}
	return nil, request.Unprocessable("Server is not provisionable")
}

func nextHardware(tx *store.Tx, d *store.Device) (*store.Hardware, error) {
	free, err := tx.Hardware().All(func(h *store.Hardware) bool {
		return h.ProjectID == d.ProjectID && h.DeviceID == "" && fits(h, d)
	})
	if err != nil {
		return nil, err
	}
	if len(free) == 0 {
		return nil, request.Refuse(http.StatusServiceUnavailable, "There are no available hardware reservations for plan %s in this project", d.Plan)
	}
	return slices.MinFunc(free, func(a, b *store.Hardware) int { return cmp.Compare(a.Seq, b.Seq) }), nil
}

// fits reports whether a reservation has the plan and the location that the device requires.
func fits(h *store.Hardware, d *store.Device) bool {
	return h.Plan == d.Plan && (d.Metro == "" || d.Metro == h.Metro)
}

func listHardware(c *call) (*reply, error) {
	p, err := c.project()
	if err != nil {
		return nil, err
	}
	pg, err := c.paged(defaultPerPage)
	if err != nil {
		return nil, err
	}
	only := c.r.URL.Query().Get("provisionable") == "only"
	var all []*store.Hardware
	err = c.store.View(func(tx *store.Tx) (err error) {
		all, err = tx.Hardware().All(func(h *store.Hardware) bool {
			return h.ProjectID == p.ID && (!only || h.DeviceID == "")
		})
		return err
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(all, func(a, b *store.Hardware) int { return cmp.Compare(a.Seq, b.Seq) })
	out := api.HardwareReservations{HardwareReservations: []api.HardwareReservation{}, Meta: pg.meta(len(all))}
	for _, h := range slice(pg, all) {
		out.HardwareReservations = append(out.HardwareReservations, c.link().hardware(h))
	}
	return ok(out)
}

func (c *call) hardware(tx *store.Tx) (*store.Hardware, error) {
	h, err := tx.Hardware().Get(strings.ToLower(c.r.PathValue("reservation")))
	if err != nil {
		return nil, notFound(err)
	}
	if !c.who.mayUse(h.ProjectID) {
		return nil, errNotFound
	}
	return h, nil
}

func getHardware(c *call) (*reply, error) {
	var h *store.Hardware
	err := c.store.View(func(tx *store.Tx) (err error) {
		h, err = c.hardware(tx)
		return err
	})
	if err != nil {
		return nil, err
	}
	return ok(c.link().hardware(h))
}

// createHardware reserves a machine for a project. It is an extension of the API.
func createHardware(c *call) (*reply, error) {
	p, err := c.project()
	if err != nil {
		return nil, err
	}
	if !c.who.admin {
		return nil, errDenied
	}
	var req api.HardwareReservationCreate
	if err := c.decode(&req); err != nil {
		return nil, err
	}
	o, err := placed(req.Plan, req.Metro, req.Facility)
	if err != nil {
		return nil, err
	}
	h := &store.Hardware{ID: cmp.Or(strings.ToLower(req.ID), uuid.NewString()), ProjectID: p.ID, Plan: o.Plan, Metro: o.Metro, Facility: o.Facility, Created: c.now()}
	if _, err := uuid.Parse(h.ID); err != nil {
		return nil, request.Unprocessable("id must be a UUID")
	}
	err = c.store.Update(func(tx *store.Tx) (err error) {
		if _, err := tx.Hardware().Get(h.ID); err == nil {
			return request.Unprocessable(fmt.Sprintf("A hardware reservation with the ID %s already exists", h.ID))
		}
		if h.Seq, err = tx.Sequence(); err != nil {
			return err
		}
		return tx.Hardware().Put(h)
	})
	if err != nil {
		return nil, err
	}
	return created(c.link().hardware(h))
}

func deleteHardware(c *call) (*reply, error) {
	if !c.who.admin {
		return nil, errDenied
	}
	err := c.store.Update(func(tx *store.Tx) error {
		h, err := c.hardware(tx)
		if err != nil {
			return err
		}
		if h.DeviceID != "" {
			return request.Unprocessable("The reservation is in use by device " + h.DeviceID)
		}
		return tx.Hardware().Delete(h.ID)
	})
	if err != nil {
		return nil, err
	}
	return noContent()
}

func (l linker) hardware(h *store.Hardware) api.HardwareReservation {
	out := api.HardwareReservation{
		ID: h.ID, ShortID: h.ID[:8], Href: l.to("hardware-reservations", h.ID), Facility: facility(h.Facility), Plan: l.plan(h.Plan),
		Project: l.href("projects", h.ProjectID), Provisionable: h.DeviceID == "", CreatedAt: api.At(h.Created),
	}
	if h.DeviceID != "" {
		out.Device = l.href("devices", h.DeviceID)
	}
	return out
}

// placed validates a plan and a location as for a device.
func placed(plan, metro, facilityCode string) (request.Order, error) {
	req := api.DeviceCreate{Plan: plan, OperatingSystem: catalog.OperatingSystems()[0].Slug}
	if metro != "" {
		req.Metro = api.Strings{metro}
	}
	if facilityCode != "" {
		req.Facility = api.Strings{facilityCode}
	}
	return request.OrderOf(&req)
}
