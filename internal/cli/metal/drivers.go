package metal

import (
	"fmt"
	"maps"
	"slices"
	"strings"

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

// DriverNames lists the kinds of machines there are.
func DriverNames() []string { return slices.Sorted(maps.Keys(drivers())) }
