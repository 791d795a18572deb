package web

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Limits of a hub.
const (
	// history is how many events a page may miss and still resume without a snapshot.
	history = 4096
	// backlog is how many events may wait for a page before it is dropped.
	backlog = 1024
	// maxPages is how many pages may be open.
	maxPages = 64
)

// errTooManyPages rejects more than maxPages open pages.
var errTooManyPages = errors.New("too many open pages")

// event is one message to the pages.
type event struct {
	number int64
	kind   string
	data   []byte
}

// hub keeps the current rows and sends changes to the open pages. It numbers events, so that a page
// that lost its connection receives exactly what it has missed.
type hub struct {
	// epoch tells the numbers of this hub from those of an earlier process.
	epoch string

	mu     sync.Mutex
	rows   map[string][]byte
	last   int64
	recent []event // the last events, oldest first
	pages  map[*page]struct{}
}

// page is an open page.
type page struct {
	// events is closed when the page was too slow.
	events chan event
}

func newHub() *hub {
	return &hub{epoch: rand.Text(), rows: map[string][]byte{}, pages: map[*page]struct{}{}}
}

// put stores a row and sends it, unless it is unchanged.
func (h *hub) put(id string, row []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if bytes.Equal(h.rows[id], row) {
		return
	}
	h.rows[id] = row
	h.send("row", row)
}

// drop removes a row.
func (h *hub) drop(id string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, found := h.rows[id]; !found {
		return
	}
	delete(h.rows, id)
	h.send("gone", []byte(strconv.Quote(id)))
}

// tell sends an event that changes no row.
func (h *hub) tell(kind string, data []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.send(kind, data)
}

// send sends an event to all pages, and drops those that can't keep up.
func (h *hub) send(kind string, data []byte) {
	h.last++
	e := event{number: h.last, kind: kind, data: data}
	if len(h.recent) == history {
		h.recent = append([]event(nil), h.recent[history/2:]...)
	}
	h.recent = append(h.recent, e)
	for p := range h.pages {
		select {
		case p.events <- e:
		default:
			close(p.events)
			delete(h.pages, p)
		}
	}
}

// join adds a page that has seen the event of an ID. It returns the events that bring the page up
// to date: those that it has missed or, if they are not known anymore, one with all rows.
func (h *hub) join(lastID string) (*page, []event, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.pages) >= maxPages {
		return nil, nil, errTooManyPages
	}
	p := &page{events: make(chan event, backlog)}
	h.pages[p] = struct{}{}
	if missed, known := h.since(lastID); known {
		return p, missed, nil
	}
	return p, []event{{number: h.last, kind: "snapshot", data: h.snapshot()}}, nil
}

// snapshot returns all rows as a JSON array, in a stable order.
func (h *hub) snapshot() []byte {
	out := []byte{'['}
	for i, id := range slices.Sorted(maps.Keys(h.rows)) {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, h.rows[id]...)
	}
	return append(out, ']')
}

// since returns the events after an ID, if all of them are known.
func (h *hub) since(lastID string) ([]event, bool) {
	epoch, text, _ := strings.Cut(lastID, ".")
	number, err := strconv.ParseInt(text, 10, 64)
	if err != nil || epoch != h.epoch || number < 0 || number > h.last || h.last-number > int64(len(h.recent)) {
		return nil, false
	}
	return append([]event(nil), h.recent[int64(len(h.recent))-(h.last-number):]...), true
}

// leave removes a page.
func (h *hub) leave(p *page) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.pages, p)
}

func (h *hub) id(number int64) string { return fmt.Sprintf("%s.%d", h.epoch, number) }
