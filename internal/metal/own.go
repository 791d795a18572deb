package metal

import (
	"io"
	"net/http"

	"github.com/drover-dev/drover/internal/metal/api"
	"github.com/drover-dev/drover/internal/metal/driver"
	"github.com/drover-dev/drover/internal/metal/request"
	"github.com/drover-dev/drover/internal/metal/store"
)

// Machine is a device with the fields that extend the API.
type Machine struct {
	api.Device
	ProjectID string           `json:"project_id"`
	Power     string           `json:"power"`
	UserState *store.UserState `json:"user_state,omitempty"`
	// Trouble is the driver's last error.
	Trouble string `json:"trouble,omitempty"`
}

func getMachine(c *call) (*reply, error) {
	d, err := c.device()
	if err != nil {
		return nil, err
	}
	return ok(Machine{Device: c.withUserdata(d), ProjectID: d.ProjectID, Power: d.Power, UserState: d.UserState, Trouble: d.Trouble})
}

// getConsole streams the console output of a machine.
func getConsole(c *call) (*reply, error) {
	d, err := c.device()
	if err != nil {
		return nil, err
	}
	console, has := c.driver.(driver.Console)
	if !has {
		return nil, request.Refuse(http.StatusNotImplemented, "The driver does not support consoles")
	}
	in, err := console.Console(c.r.Context(), d.ID, c.r.URL.Query().Get("follow") == "true")
	if err != nil {
		return nil, request.Refuse(http.StatusNotFound, "Reading the console of %s failed: %v", d.Hostname, err)
	}
	return streamed(in), nil
}

// streamed responds with text as it arrives.
func streamed(in io.ReadCloser) *reply {
	return &reply{status: http.StatusOK, stream: func(w http.ResponseWriter, _ *http.Request) {
		defer in.Close()
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = io.Copy(flushing{w, http.NewResponseController(w)}, in)
	}}
}

// flushing flushes after every write, for clients that follow.
type flushing struct {
	w  io.Writer
	rc *http.ResponseController
}

func (f flushing) Write(p []byte) (int, error) {
	n, err := f.w.Write(p)
	_ = f.rc.Flush()
	return n, err
}
