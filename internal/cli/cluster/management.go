package cluster

import (
	"path/filepath"

	"github.com/drover-dev/drover/internal/metal"
	"github.com/drover-dev/drover/internal/model/spec"
	"github.com/drover-dev/drover/internal/operate/lifecycle"
	"github.com/drover-dev/drover/internal/plane"
)

// management prepares the work on a management cluster.
func (c *change) management(config *spec.Config) (*lifecycle.Management, error) {
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
		Options: options, Config: config, Own: c.kubeconfig, Image: c.image, Undo: c.undo,
		Bootstrap: plane.Home{Dir: bootstrap}, Metal: metal.Home{Dir: machines},
	}, nil
}

// self is a management cluster as one looks at it: its objects are on itself.
func (c *change) self(config *spec.Config) (*lifecycle.Workload, error) {
	if c.kubeconfig == "" {
		c.kubeconfig = files(config.Cluster.Name).Kubeconfig()
	}
	return c.workload(config)
}
