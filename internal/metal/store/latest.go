package store

import (
	"bytes"
	"container/heap"
	"encoding/json"
	"errors"
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

// errFound ends a search.
var errFound = errors.New("found")

// FindEvent returns an event by its ID, or ErrNotFound. It reads all events.
func (t *Tx) FindEvent(id string) (DeviceEvent, error) {
	var out DeviceEvent
	var device string
	err := t.bucket(bucketEvents).ForEach(func(key, data []byte) error {
		if !bytes.Contains(data, []byte(id)) || json.Unmarshal(data, &out.Event) != nil || out.Event.ID != id {
			return nil
		}
		device = string(key[:len(key)-len(eventKey("", 0))])
		return errFound
	})
	if !errors.Is(err, errFound) {
		return DeviceEvent{}, errors.Join(err, ErrNotFound)
	}
	out.Device, err = t.Devices().Get(device)
	return out, err
}
