package metal

import (
	"cmp"
	"net/http"
	"strconv"

	"github.com/drover-dev/drover/internal/metal/fault"
	"github.com/drover-dev/drover/internal/metal/request"
	"github.com/drover-dev/drover/internal/metal/store"
)

// blockedPage is the response of a firewall in front of an API.
const blockedPage = `<html><head><title>403 Forbidden</title></head><body><h1>Request blocked</h1><p>Too many requests.</p></body></html>`

// injectedFault returns the fault to inject into a call. It skips extensions of the API, since
// otherwise a fault could not be removed.
func (c *call) injectedFault() (fault.Fault, bool) {
	if c.r.Pattern == "" || isOwn(c.r.URL.Path) {
		return fault.Fault{}, false
	}
	f, hit := c.faults.StrikeCall(c.projectOfCall(), c.r, c.r.URL.Path)
	f.After = f.After || f.Kind == fault.Truncate
	return f, hit
}

func isOwn(path string) bool {
	return len(path) > len("/drover/") && path[:len("/drover/")] == "/drover/"
}

// projectOfCall returns the project that a call is about; for the administrator, the path names it.
func (c *call) projectOfCall() string {
	if c.who.project != "" {
		return c.who.project
	}
	if id := c.r.PathValue("project"); id != "" {
		return id
	}
	var project string
	_ = c.store.View(func(tx *store.Tx) error {
		if d, err := tx.Devices().Get(c.r.PathValue("device")); err == nil {
			project = d.ProjectID
		}
		return nil
	})
	return project
}

// respondWithFault responds with a fault instead of executing the call.
func (s *Server) respondWithFault(w http.ResponseWriter, r *http.Request, f fault.Fault) {
	switch f.Kind {
	case fault.RateLimitHTML:
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.WriteHeader(http.StatusForbidden)
		_, _ = w.Write([]byte(blockedPage))
	case fault.RateLimit:
		w.Header().Set("X-RateLimit-Remaining", "0")
		w.Header().Set("Retry-After", "1")
		s.answer(w, r, nil, errRateLimit)
	case fault.Timeout:
		s.blockUntilDone(r)
	default:
		s.answer(w, r, nil, &request.Error{Status: cmp.Or(f.Status, errOhSnap.Status), Messages: errOhSnap.Messages})
	}
}

// corruptResponse corrupts the response to an executed call.
func (s *Server) corruptResponse(w http.ResponseWriter, r *http.Request, f fault.Fault, out *reply, err error) {
	if f.Kind != fault.Truncate {
		s.respondWithFault(w, r, f)
		return
	}
	status, body := s.encode(r, out, err)
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)+1))
	w.WriteHeader(status)
	_, _ = w.Write(body[:len(body)/2])
	_ = http.NewResponseController(w).Flush()
	panic(http.ErrAbortHandler)
}

// blockUntilDone blocks until the caller gives up or the server stops.
func (s *Server) blockUntilDone(r *http.Request) {
	select {
	case <-r.Context().Done():
	case <-s.stopped.Done():
	}
	panic(http.ErrAbortHandler)
}

func listFaults(c *call) (*reply, error) {
	p, err := c.project()
	if err != nil {
		return nil, err
	}
	return ok(map[string]any{"faults": c.faults.List(p.ID)})
}

func addFault(c *call) (*reply, error) {
	p, err := c.project()
	if err != nil {
		return nil, err
	}
	var f fault.Fault
	if err := c.decode(&f); err != nil {
		return nil, err
	}
	f, err = c.faults.Add(p.ID, f)
	if err != nil {
		return nil, request.Unprocessable(err.Error())
	}
	return created(f)
}

// removeFaults removes one fault, or all faults of a project.
func removeFaults(c *call) (*reply, error) {
	p, err := c.project()
	if err != nil {
		return nil, err
	}
	id := c.r.PathValue("fault")
	if !c.faults.Remove(p.ID, id) && id != "" {
		return nil, errNotFound
	}
	return noContent()
}
