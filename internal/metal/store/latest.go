package store

import (
	"bytes"
	"container/heap"
	"encoding/json"
	"fmt"
)

// DeviceEvent is an event together with its device.
type DeviceEvent struct {
	Device *Device
	Event  Event
}

// cursor is a position in the events of a device, which are ordered by time.
type cursor struct {
	DeviceEvent
	number uint64
	oldest uint64
}

// cursors is a heap of devices, the one with the newest event first.
type cursors []*cursor

func (c cursors) Len() int           { return len(c) }
func (c cursors) Less(i, j int) bool { return c[i].Event.Time.After(c[j].Event.Time) }
func (c cursors) Swap(i, j int)      { c[i], c[j] = c[j], c[i] }
func (c *cursors) Push(x any)        { *c = append(*c, x.(*cursor)) }

func (c *cursors) Pop() any {
	last := (*c)[len(*c)-1]
	*c = (*c)[:len(*c)-1]
	return last
}

// LatestEvents returns the events of several devices from offset, newest first, and their total
// number. It reads one event per device, and then only those up to the end of the page.
func (t *Tx) LatestEvents(devices []string, offset, limit int) (events []DeviceEvent, total int, err error) {
	var queue cursors
	for _, id := range devices {
		c, err := t.cursor(id)
		if err != nil {
			return nil, 0, err
		}
		if c != nil {
			total += int(c.number - c.oldest + 1)
			queue = append(queue, c)
		}
	}
	heap.Init(&queue)
	for i := 0; i < offset+limit && len(queue) > 0; i++ {
		if i >= offset {
			events = append(events, queue[0].DeviceEvent)
		}
		if err := t.advance(&queue); err != nil {
			return nil, 0, err
		}
	}
	return events, total, nil
}

// cursor returns the newest event of a device, or nil if it has none.
func (t *Tx) cursor(id string) (*cursor, error) {
	d, err := t.Devices().Get(id)
	if err != nil || d.Events == 0 {
		return nil, ignoreNotFound(err)
	}
	c := &cursor{DeviceEvent: DeviceEvent{Device: d}, number: d.Events, oldest: d.Events - min(d.Events, eventsKept) + 1}
	return c, t.readEvent(c)
}

// advance moves the first device of the queue to its next older event.
func (t *Tx) advance(queue *cursors) error {
	c := (*queue)[0]
	if c.number == c.oldest {
		heap.Pop(queue)
		return nil
	}
	c.number--
	if err := t.readEvent(c); err != nil {
		return err
	}
	heap.Fix(queue, 0)
	return nil
}

func (t *Tx) readEvent(c *cursor) error {
	c.Event = Event{}
	data := t.bucket(bucketEvents).Get(eventKey(c.Device.ID, c.number))
	if data == nil {
		return nil
	}
	if err := json.Unmarshal(data, &c.Event); err != nil {
		return fmt.Errorf("an event of device %q is damaged: %w", c.Device.ID, err)
	}
	return nil
}

// FindEvent returns an event of one of several devices by its ID, or ErrNotFound. It reads the
// events of these devices only.
func (t *Tx) FindEvent(devices []string, id string) (DeviceEvent, error) {
	c := t.bucket(bucketEvents).Cursor()
	for _, device := range devices {
		for key, data := c.Seek([]byte(device)); bytes.HasPrefix(key, []byte(device)); key, data = c.Next() {
			var e Event
			if !bytes.Contains(data, []byte(id)) || json.Unmarshal(data, &e) != nil || e.ID != id {
				continue
			}
			d, err := t.Devices().Get(device)
			return DeviceEvent{Device: d, Event: e}, err
		}
	}
	return DeviceEvent{}, ErrNotFound
}
