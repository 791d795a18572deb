package metal

import (
	"net/netip"

	"github.com/drover-dev/drover/internal/metal/catalog"
	"github.com/drover-dev/drover/internal/metal/driver"
	"github.com/drover-dev/drover/internal/metal/store"
)

// cloudName identifies this platform in instance data; cloud-init knows it.
const cloudName = "equinixmetal"

// machineOf returns the machine that the driver runs for a device.
func machineOf(l loaded) driver.Machine {
	d := l.device
	plan, _ := catalog.FindPlan(d.Plan)
	os := systemOf(d.OS)
	m := driver.Machine{
		ID: d.ID, Hostname: d.Hostname, Plan: d.Plan, OS: d.OS, CPUs: plan.CPUs, MemoryBytes: plan.MemoryBytes,
		Userdata: l.userdata, SSHKeys: l.keys, Tags: d.Tags, Endpoint: d.Endpoint, Server: l.server, Cycle: d.Cycle,
		Instance: driver.InstanceData{
			InstanceID: d.ID, LocalHostname: d.Hostname, Region: d.Metro, AvailabilityZone: d.Facility,
			CloudName: cloudName, Platform: cloudName, Distro: os.Distro, DistroVersion: os.Version,
		},
	}
	for _, a := range d.Addresses {
		if a.Management {
			m.Addresses = append(m.Addresses, driver.Address{IP: a.IP, Prefix: a.Prefix, Gateway: a.Gateway, Public: a.Public, Management: true})
		}
	}
	return m
}

// elastic returns the addresses of a device that can move to other devices.
func elastic(d *store.Device) []netip.Addr {
	var out []netip.Addr
	for _, a := range d.Addresses {
		if !a.Management {
			out = append(out, a.IP)
		}
	}
	return out
}

// systemOf describes an operating system. For one that is not in the catalog, it derives the
// description from the slug.
func systemOf(slug string) catalog.OS {
	if os, found := catalog.FindOS(slug); found {
		return os
	}
	return catalog.OS{Slug: slug, Name: slug, Distro: slug}
}
