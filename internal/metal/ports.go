package metal

import (
	"slices"
	"strings"

	"github.com/drover-dev/drover/internal/metal/api"
	"github.com/drover-dev/drover/internal/metal/store"
)

// getPort finds a port of a device that the caller may access. The IDs of ports follow from those
// of their devices.
func getPort(c *call) (*reply, error) {
	id := strings.ToLower(c.r.PathValue("port"))
	owner := func(device string) bool {
		return slices.ContainsFunc(portNames, func(name string) bool { return portID(device, name) == id })
	}
	devices := c.store.Devices().All(store.Query{Project: c.who.project})
	i := slices.IndexFunc(devices, owner)
	if i < 0 {
		return nil, errNotFound
	}
	var d *store.Device
	err := c.store.View(func(tx *store.Tx) (err error) {
		d, err = tx.Devices().Get(devices[i])
		return err
	})
	if err != nil {
		return nil, notFound(err)
	}
	ports := c.link().ports(d)
	return ok(ports[slices.IndexFunc(ports, func(p api.Port) bool { return p.ID == id })])
}
