package metal

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/drover-dev/drover/internal/metal"
	"github.com/drover-dev/drover/internal/metal/driver"
	"github.com/drover-dev/drover/internal/metal/driver/local"
	"github.com/drover-dev/drover/internal/metal/driver/memory"
	"github.com/drover-dev/drover/internal/metal/driver/server"
)

// drivers returns the drivers by the name that --driver accepts.
func drivers() map[string]driver.New {
	return map[string]driver.New{
		"local":  local.New,
		"memory": memory.New,
		"server": server.New,
	}
}

func findDriver(name string) (driver.New, error) {
	if found, ok := drivers()[name]; ok {
		return found, nil
	}
	return nil, fmt.Errorf("unsupported driver %q: use %s", name, strings.Join(DriverNames(), " or "))
}

// Usable returns why a driver can't provision machines on this host with that home, or nil.
func Usable(name string, home metal.Home) error {
	if name == "local" {
		return local.Usable(home.Dir)
	}
	return nil
}

// DriverNames lists the supported drivers.
func DriverNames() []string { return slices.Sorted(maps.Keys(drivers())) }
