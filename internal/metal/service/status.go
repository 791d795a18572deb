package service

import (
	"context"
	"errors"
	"net/http"

	"github.com/drover-dev/drover/internal/base/process"
	"github.com/drover-dev/drover/internal/metal"
	"github.com/drover-dev/drover/internal/metal/admin"
	"github.com/drover-dev/drover/internal/metal/api"
)

// Status describes the metal service of a home.
type Status struct {
	Home    string `json:"home"`
	Running bool   `json:"running"`
	Driver  string `json:"driver,omitempty"`
	URL     string `json:"url,omitempty"`
	Project string `json:"project,omitempty"`
	PID     int    `json:"pid,omitempty"`
	// MemoryBytes is the memory of the service itself, without its machines.
	MemoryBytes int64 `json:"memoryBytes,omitempty"`
	// Machines is the number of machines, or nil if it is unknown.
	Machines *int `json:"machines,omitempty"`
	// Error explains why a running service could not be queried.
	Error string `json:"error,omitempty"`
}

// ReadStatus returns the status of the metal service of a home. The error is metal.ErrNoMetal if
// none has run there.
func ReadStatus(ctx context.Context, h metal.Home) (Status, error) {
	s := Status{Home: h.Dir}
	e, err := h.ReadEndpoint()
	if err != nil {
		return s, err
	}
	s.Driver, s.URL, s.Project = e.Driver, e.APIURL(), e.Project
	if !e.Alive() {
		return s, nil
	}
	s.Running, s.PID, s.MemoryBytes = true, e.PID, process.MemoryBytes(e.PID)
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	count, err := countDevices(ctx, h)
	if err != nil {
		s.Error = err.Error()
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			s.Error = "no response in time"
		}
		return s, nil
	}
	s.Machines = &count
	return s, nil
}

func countDevices(ctx context.Context, h metal.Home) (int, error) {
	c, err := admin.Open(h)
	if err != nil {
		return 0, err
	}
	var page api.Devices
	err = c.Do(ctx, http.MethodGet, "/drover/v1/devices?per_page=1&exclude=userdata", nil, &page)
	return page.Meta.Total, err
}
