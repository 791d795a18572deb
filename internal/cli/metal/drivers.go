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
)

// drivers are the kinds of machines there are, by the name of --driver.
func drivers() map[string]driver.New {
	return map[string]driver.New{
		"local":  local.New,
		"memory": memory.New,
	}
}

func findDriver(name string) (driver.New, error) {
	if found, ok := drivers()[name]; ok {
		return found, nil
	}
	return nil, fmt.Errorf("there is no driver %q: use one of %s", name, strings.Join(DriverNames(), ", "))
}

// Usable says why a driver cannot make machines on this host, in a metal of
// that home; nil means that it can.
func Usable(name string, home metal.Home) error {
	if name == "local" {
		return local.Usable(home.Dir)
	}
	return nil
}

// DriverNames lists the kinds of machines there are.
func DriverNames() []string { return slices.Sorted(maps.Keys(drivers())) }
