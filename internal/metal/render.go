package metal

import (
	"crypto/sha256"
	"fmt"
	"net/netip"
	"slices"

	"github.com/drover-dev/drover/internal/metal/api"
	"github.com/drover-dev/drover/internal/metal/catalog"
	"github.com/drover-dev/drover/internal/metal/driver"
	"github.com/drover-dev/drover/internal/metal/store"
)

// renderDevice renders a device, and what the driver can do with it.
func (c *call) renderDevice(d *store.Device, userdata string) api.Device {
	out := c.link().device(d, userdata)
	_, out.KubernetesUpgradable = c.driver.(driver.Upgrader)
	return out
}

// device renders a device for clients. It omits the addresses of a queued device, which no machine
// serves yet.
func (l linker) device(d *store.Device, userdata string) api.Device {
	out := api.Device{
		ID: d.ID, ShortID: d.ID[:8], Href: l.to("devices", d.ID), Hostname: d.Hostname, Description: d.Description, State: d.State,
		Tags: nonNil(d.Tags), IPAddresses: []api.IPAssignment{}, Facility: facility(d.Facility), Metro: metro(d.Metro),
		Plan: l.plan(d.Plan), OperatingSystem: operatingSystem(systemOf(d.OS)), Project: l.href("projects", d.ProjectID),
		BillingCycle: d.BillingCycle, CreatedAt: api.At(d.Created), UpdatedAt: api.At(d.Updated), Userdata: userdata,
		CustomData: api.ObjectOf(d.CustomData), Locked: d.Locked, ProvisioningPercentage: d.Percent, ProvisioningEvents: provisioningEvents(d),
		SSHKeys: []api.Href{}, NetworkPorts: l.ports(d), User: "root", TerminationTime: api.At(d.TerminationTime),
		SpotInstance: d.SpotInstance, SpotPriceMax: d.SpotPriceMax, AlwaysPXE: d.AlwaysPXE, IPXEScriptURL: d.IPXEScriptURL,
		SOS: d.ID + "@sos." + d.Facility + ".local", SwitchUUID: catalog.ID("switch", d.Facility), Storage: storageOf(d), Volumes: []api.Href{},
	}
	if d.State != StateQueued {
		for _, a := range d.Addresses {
			out.IPAddresses = append(out.IPAddresses, l.assignment(a, d.ID))
		}
	}
	for _, id := range d.SSHKeyIDs {
		out.SSHKeys = append(out.SSHKeys, *l.href("ssh-keys", id))
	}
	if d.ReservationID != "" {
		out.HardwareReservation = &api.ReservationRef{ID: d.ReservationID, Href: l.to("hardware-reservations", d.ReservationID)}
	}
	if u := d.Upgrade; u != nil {
		out.KubernetesUpgrade = &api.KubernetesUpgrade{Version: u.Version, State: string(u.State), Message: u.Message, ChangedAt: api.At(u.Changed)}
	}
	return out
}

// provisioningEvents returns all steps; steps that are not reached have no time.
func provisioningEvents(d *store.Device) []api.Event {
	out := make([]api.Event, 0, len(provisioningSteps))
	for i, body := range provisioningSteps {
		e := api.Event{Type: stepName(i + 1), Body: body, Interpolated: body}
		if i < len(d.Steps) {
			e.CreatedAt = api.At(d.Steps[i])
		}
		out = append(out, e)
	}
	return out
}

func (l linker) event(d *store.Device, e store.Event) api.Event {
	return api.Event{
		ID: e.ID, Type: e.Type, Body: e.Body, State: "", Interpolated: e.Body, CreatedAt: api.At(e.Time),
		Relationships: []api.Href{*l.href("devices", d.ID), *l.href("projects", d.ProjectID)}, Href: l.to("events", e.ID),
	}
}

// portNames are the names of the ports of every device; the first is the bond.
var portNames = []string{"bond0", "eth0", "eth1"}

// ports returns a bond of two network cards, as on most Packet machines.
func (l linker) ports(d *store.Device) []api.Port {
	bond := api.Port{ID: portID(d.ID, portNames[0]), Type: "NetworkBondPort", Name: portNames[0], NetworkType: "layer3", Data: api.PortData{Bonded: true}}
	ports := []api.Port{bond}
	for i, name := range portNames[1:] {
		mac := macOf(d.ID, i)
		ports = append(ports, api.Port{
			ID: portID(d.ID, name), Type: "NetworkPort", Name: name,
			Data: api.PortData{MAC: &mac, Bonded: true}, Bond: &api.BondRef{ID: bond.ID, Name: bond.Name},
		})
	}
	for i := range ports {
		ports[i].Href = l.to("ports", ports[i].ID)
	}
	return ports
}

func portID(device, name string) string { return catalog.ID("port", device+"/"+name) }

// macOf returns a stable, locally administered address.
func macOf(device string, n int) string {
	sum := sha256.Sum256([]byte(device))
	return fmt.Sprintf("02:%02x:%02x:%02x:%02x:%02x", sum[0], sum[1], sum[2], sum[3], byte(n))
}

func (l linker) assignment(a store.Address, device string) api.IPAssignment {
	return api.IPAssignment{
		ID: a.ID, Address: a.IP.String(), AddressFamily: family(a.IP), Public: a.Public, Management: a.Management, Manageable: !a.Management,
		Enabled: true, CIDR: a.Prefix.Bits(), Gateway: addressText(a.Gateway), Netmask: netmask(a.Prefix), Network: a.Prefix.Masked().Addr().String(),
		AssignedTo: l.href("devices", device), CreatedAt: api.At(a.Created), Href: l.to("ips", a.ID),
		ParentBlock: &api.ParentBlock{Network: a.Prefix.Masked().Addr().String(), Netmask: netmask(a.Prefix), CIDR: a.Prefix.Bits(), Href: l.to("ips", a.BlockID)},
	}
}

func family(a netip.Addr) int {
	if a.Is4() {
		return 4
	}
	return 6
}

// netmask formats a prefix length as a dotted netmask.
func netmask(p netip.Prefix) string {
	raw := make([]byte, p.Addr().BitLen()/8)
	for i := range p.Bits() {
		raw[i/8] |= 0x80 >> (i % 8)
	}
	mask, _ := netip.AddrFromSlice(raw)
	return mask.String()
}

func addressText(a netip.Addr) string {
	if !a.IsValid() {
		return ""
	}
	return a.String()
}

func metro(code string) *api.Metro {
	m, found := catalog.FindMetro(code)
	if !found {
		return nil
	}
	return &api.Metro{ID: catalog.ID("metro", m.Code), Code: m.Code, Name: m.Name, Country: m.Country}
}

func facility(code string) *api.Facility {
	m, found := catalog.MetroOf(code)
	if !found {
		return nil
	}
	return &api.Facility{
		ID: catalog.ID("facility", code), Code: code, Name: m.Name + " " + code,
		Features: []string{"baremetal", "layer_2", "global_ipv4"}, Metro: metro(m.Code),
	}
}

func (l linker) plan(slug string) *api.Plan {
	p, found := catalog.FindPlan(slug)
	if !found {
		return nil
	}
	out := &api.Plan{
		ID: catalog.ID("plan", p.Slug), Slug: p.Slug, Name: p.Name, Description: "A machine on this host", Line: p.Line, Class: p.Class, Legacy: p.Legacy,
		Specs: api.Specs{
			CPUs:   []api.CPU{{Count: p.CPUs, Type: "virtual"}},
			Memory: api.Memory{Total: fmt.Sprintf("%dGB", p.MemoryBytes>>30)},
			Drives: []api.Drive{}, NICs: []api.NIC{{Count: 2, Type: "10Gbps"}},
		},
		DeploymentTypes: p.DeploymentTypes(), AvailableIn: []api.Href{}, AvailableInMetros: []api.Href{},
	}
	return out
}

func operatingSystem(o catalog.OS) *api.OperatingSystem {
	return &api.OperatingSystem{
		ID: catalog.ID("os", o.Slug), Slug: o.Slug, Name: o.Name, Distro: o.Distro, Version: o.Version, ProvisionableOn: []string{},
	}
}

func nonNil[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return slices.Clone(list)
}

// storageOf returns the requested layout of disks, if there is one.
func storageOf(d *store.Device) api.Object {
	if len(d.Storage) == 0 {
		return nil
	}
	return api.ObjectOf(d.Storage)
}
