package web

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

const (
	// heartbeat is how often a silent stream proves that it is alive.
	heartbeat = 20 * time.Second
	// writeTimeout is how long a browser may take to accept an event.
	writeTimeout = 10 * time.Second
)

// stream sends the rows of all clusters, then each change, as server-sent events. A page that lost
// its connection continues after the event in the header Last-Event-ID.
func (v *View) stream(w http.ResponseWriter, r *http.Request) {
	s := &stream{w: w, control: http.NewResponseController(w), hub: v.hub}
	w.Header().Set("Content-Type", "text/event-stream")
	if !s.await(r, v) {
		return
	}
	p, missed, err := v.hub.join(r.Header.Get("Last-Event-ID"))
	if err != nil {
		_ = s.send(event{kind: "refused", data: []byte(`"Too many pages are open. Close some of them."`)}) // the browser may be gone
		return
	}
	defer v.hub.leave(p)
	for _, e := range missed {
		if s.send(e) != nil {
			return
		}
	}
	trouble, _ := json.Marshal(v.trouble()) // a string
	if s.write("event: problem\ndata: %s\n\n", trouble) != nil {
		return
	}
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	for {
		select {
		case <-r.Context().Done():
			return
		case <-beat.C:
			if s.write(": alive\n\n") != nil {
				return
			}
		case e, open := <-p.events:
			if !open || s.send(e) != nil { // The browser reconnects.
				return
			}
		}
	}
}

// await waits until the caches are filled, and sends why they are not.
func (s *stream) await(r *http.Request, v *View) bool {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-v.synced:
			return true
		case <-r.Context().Done():
			return false
		case <-tick.C:
			trouble, _ := json.Marshal(v.trouble()) // a string
			if s.write("event: problem\ndata: %s\n\n", trouble) != nil {
				return false
			}
		}
	}
}

// stream is the stream of one page.
type stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
	hub     *hub
}

func (s *stream) send(e event) error {
	return s.write("id: %s\nevent: %s\ndata: %s\n\n", s.hub.id(e.number), e.kind, e.data)
}

func (s *stream) write(format string, args ...any) error {
	if err := s.control.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return err
	}
	if _, err := fmt.Fprintf(s.w, format, args...); err != nil {
		return err
	}
	return s.control.Flush()
}
