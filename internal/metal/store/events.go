package store

import (
	"encoding/json"
	"errors"
	"fmt"
)

// eventsKept is the number of events that a device keeps; the oldest are dropped first.
const eventsKept = 500

// AddEvent appends an event to a device. The device's record counts events, so the caller must
// store it.
func (t *Tx) AddEvent(d *Device, e Event) error {
	b := t.change(bucketEvents)
	d.Events++
	data, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("encoding event of device %q: %w", d.ID, err)
	}
	if d.Events > eventsKept {
		if err := b.Delete(eventKey(d.ID, d.Events-eventsKept)); err != nil {
			return err
		}
	}
	return b.Put(eventKey(d.ID, d.Events), data)
}

// Events returns the events of a device from offset, newest first, and their total number.
func (t *Tx) Events(d *Device, offset, limit int) (events []Event, total int, err error) {
	total = int(min(d.Events, eventsKept))
	b := t.bucket(bucketEvents)
	for i := offset; i < min(offset+limit, total); i++ {
		var e Event
		data := b.Get(eventKey(d.ID, d.Events-uint64(i)))
		if data == nil {
			continue
		}
		if err := json.Unmarshal(data, &e); err != nil {
			return nil, 0, fmt.Errorf("an event of device %q is damaged: %w", d.ID, err)
		}
		events = append(events, e)
	}
	return events, total, nil
}

// DropDevice deletes a device with its userdata, events and management addresses. Elastic addresses
// return to their blocks, and a hardware reservation becomes free.
func (t *Tx) DropDevice(d *Device) error {
	for _, drop := range []func(*Device) error{t.dropEvents, t.dropAddresses, t.freeHardware, t.dropSessions} {
		if err := drop(d); err != nil {
			return err
		}
	}
	if err := t.SetUserdata(d.ID, nil); err != nil {
		return err
	}
	if err := t.countDevice(d, -1); err != nil {
		return err
	}
	return t.Devices().Delete(d.ID)
}

func (t *Tx) dropEvents(d *Device) error {
	b := t.change(bucketEvents)
	for n := d.Events; n > 0 && n+eventsKept > d.Events; n-- {
		if err := b.Delete(eventKey(d.ID, n)); err != nil {
			return err
		}
	}
	return nil
}

func (t *Tx) dropSessions(d *Device) error {
	for _, id := range t.store.sessions.All(Query{Terms: []string{"device:" + d.ID}}) {
		if err := t.Sessions().Delete(id); err != nil {
			return err
		}
	}
	return nil
}

func (t *Tx) freeHardware(d *Device) error {
	if d.ReservationID == "" {
		return nil
	}
	h, err := t.Hardware().Get(d.ReservationID)
	if err != nil || h.DeviceID != d.ID {
		return ignoreNotFound(err)
	}
	h.DeviceID = ""
	if dropped, err := t.isDropped(h.ProjectID); err != nil || dropped {
		return errors.Join(err, t.Hardware().Delete(h.ID))
	}
	return t.Hardware().Put(h)
}
