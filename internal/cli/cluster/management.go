package cluster

import (
	"path/filepath"

	"github.com/drover-dev/drover/internal/metal"
	"github.com/drover-dev/drover/internal/model/spec"
	"github.com/drover-dev/drover/internal/operate/lifecycle"
	"github.com/drover-dev/drover/internal/plane"
)

// management returns the planner of a management cluster.
func (c *change) management(config *spec.Config) (lifecycle.Planner, error) {
	options, err := c.options()
	if err != nil {
		return nil, err
	}
	bootstrap, err := filepath.Abs(lifecycle.BootstrapHome(config.Cluster.Name).Dir)
	if err != nil {
		return nil, err
	}
	machines, err := filepath.Abs(metal.DefaultHome())
	if err != nil {
		return nil, err
	}
	return &lifecycle.Management{
		Options: options, Config: config, Own: c.kubeconfig, Image: c.image,
		Bootstrap: plane.Home{Dir: bootstrap}, Metal: metal.Home{Dir: machines},
	}, nil
}
