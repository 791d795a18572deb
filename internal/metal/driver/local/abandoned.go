package local

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/vishvananda/netlink"
)

// maxAlias is the longest alias that the kernel keeps for a link.
const maxAlias = 255

// markPrefix starts the alias of a bridge; the home follows. A directory that doesn't exist here
// may exist in another mount namespace, so the mark names that of the driver.
func markPrefix() (string, error) {
	namespace, err := os.Readlink("/proc/self/ns/mnt")
	if err != nil {
		return "", fmt.Errorf("reading the mount namespace: %w", err)
	}
	return "drover " + namespace + " ", nil
}

// mark makes a bridge name its home, so that it can be removed once the home no longer exists. A
// home whose path is too long for an alias isn't marked.
func (d *Driver) mark(bridge netlink.Link) error {
	prefix, err := markPrefix()
	if err != nil {
		return err
	}
	alias := prefix + d.home
	if len(alias) > maxAlias || bridge.Attrs().Alias == alias {
		return nil
	}
	if err := netlink.LinkSetAlias(bridge, alias); err != nil {
		return fmt.Errorf("marking link %q: %w", bridge.Attrs().Name, err)
	}
	return nil
}

// removeAbandoned removes the bridges and packet filters of homes that no longer exist: a driver
// that is killed leaves them, and if its home was temporary, no later driver opens it again.
func (d *Driver) removeAbandoned() error {
	prefix, err := markPrefix()
	if err != nil {
		return err
	}
	links, err := netlink.LinkList()
	if err != nil { // also if the list is incomplete, because a port may be missing from it
		return fmt.Errorf("listing links: %w", err)
	}
	var failed []error
	for _, home := range abandonedHomes(links, prefix) {
		d.log.Info("removing the bridge of a home that no longer exists", "home", home)
		gone := &Driver{home: home, name: Name(home)}
		if err := gone.removeNetwork(); err != nil {
			failed = append(failed, fmt.Errorf("removing the bridge of %q: %w", home, err))
		}
	}
	return errors.Join(failed...)
}

// abandonedHomes returns the homes that the marks of bridges name and that don't exist. A bridge
// with ports has machines, whatever became of their home.
func abandonedHomes(links []netlink.Link, prefix string) []string {
	ports := map[int]int{}
	for _, l := range links {
		ports[l.Attrs().MasterIndex]++
	}
	var homes []string
	for _, l := range links {
		home, marked := strings.CutPrefix(l.Attrs().Alias, prefix)
		ours := marked && filepath.IsAbs(home) && l.Type() == "bridge" && l.Attrs().Name == (&Driver{name: Name(home)}).bridgeName()
		if ours && ports[l.Attrs().Index] == 0 && !exists(home) {
			homes = append(homes, home)
		}
	}
	return homes
}

// removeNetwork removes the packet filter and the bridge of the home: the bridge last, because only
// it carries the mark.
func (d *Driver) removeNetwork() error {
	if err := d.removeFilter(); err != nil {
		return err
	}
	return d.removeBridge()
}
