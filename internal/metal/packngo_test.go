package metal

import (
	"net/http"
	"slices"
	"testing"

	"github.com/packethost/packngo"
)

// TestPackngoClientWorks uses the client library of most Packet tools with both base paths.
func TestPackngoClientWorks(t *testing.T) {
	for _, base := range []string{"/metal/v1/", "/"} {
		t.Run("under "+base, func(t *testing.T) {
			w := newWorld(t)
			c, err := packngo.NewClientWithBaseURL("test", w.token, nil, w.http.URL+base)
			if err != nil {
				t.Fatal(err)
			}
			o := oldClient{world: w, c: c}
			o.projects()
			key := o.keys()
			d := o.devices(key)
			o.addresses(d)
			o.bgp(d)
			o.power(d)
			o.pages()
			o.catalog()
			o.remove(d)
		})
	}
}

type oldClient struct {
	*world
	c *packngo.Client
}

func (o oldClient) check(what string, err error) {
	o.t.Helper()
	if err != nil {
		o.t.Fatalf("%s: %v", what, err)
	}
}

func (o oldClient) projects() {
	o.t.Helper()
	list, resp, err := o.c.Projects.List(nil)
	o.check("listing projects", err)
	if len(list) != 1 || list[0].ID != o.project {
		o.t.Errorf("projects = %v, want only the token's own", list)
	}
	if resp.RequestLimit == 0 || resp.RequestsRemaining == 0 || resp.Reset.IsZero() {
		o.t.Errorf("rate headers are missing: %+v", resp.Rate)
	}
	p, _, err := o.c.Projects.Get(o.project, nil)
	o.check("getting the project", err)
	if p.Name != DefaultProject {
		o.t.Errorf("project name = %q", p.Name)
	}
}

const testKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHqW9kS1r3T8bXlDkUu6m0Yc5h5uJm1u7l5nq0sV6b2E someone"

func (o oldClient) keys() string {
	o.t.Helper()
	k, _, err := o.c.SSHKeys.Create(&packngo.SSHKeyCreateRequest{Label: "laptop", Key: testKey, ProjectID: o.project})
	o.check("creating a key", err)
	if k.FingerPrint == "" {
		o.t.Error("the key has no fingerprint")
	}
	list, _, err := o.c.SSHKeys.ProjectList(o.project)
	o.check("listing keys", err)
	if len(list) != 1 || list[0].ID != k.ID {
		o.t.Errorf("keys = %v", list)
	}
	label := "desk"
	k, _, err = o.c.SSHKeys.Update(k.ID, &packngo.SSHKeyUpdateRequest{Label: &label})
	o.check("updating a key", err)
	if k.Label != label {
		o.t.Errorf("label = %q", k.Label)
	}
	return k.ID
}

func (o oldClient) devices(key string) string {
	o.t.Helper()
	d, _, err := o.c.Devices.Create(&packngo.DeviceCreateRequest{
		Hostname: "cp-1", Plan: "c3.small.x86", Facility: []string{"ewr1"}, OS: "ubuntu_20_04", BillingCycle: "hourly",
		ProjectID: o.project, UserData: "#!/bin/sh\ntrue\n", Tags: []string{"one", "two"}, ProjectSSHKeys: []string{key},
	})
	o.check("creating a device", err)
	if d.State != StateQueued || d.Facility.Code != "ewr1" || d.Metro.Code != "ny" || len(d.SSHKeys) != 1 {
		o.t.Errorf("created %s in %v, %v with keys %v", d.State, d.Facility, d.Metro, d.SSHKeys)
	}
	o.awaitState(d.ID, StateActive)
	d, _, err = o.c.Devices.Get(d.ID, nil)
	o.check("getting a device", err)
	info := d.GetNetworkInfo()
	if info.PublicIPv4 == "" || info.PrivateIPv4 == "" {
		o.t.Errorf("network = %+v, want a public and a private address", info)
	}
	if d.ProvisionPer != 100 || d.GetNetworkType() != packngo.NetworkTypeL3 {
		o.t.Errorf("%v%%, network type %s", d.ProvisionPer, d.GetNetworkType())
	}
	for _, e := range d.ProvisionEvents {
		if e.CreatedAt == nil {
			o.t.Errorf("step %s of an active device was never reached", e.Type)
		}
	}
	events, _, err := o.c.Devices.ListEvents(d.ID, nil)
	o.check("listing events", err)
	if !slices.ContainsFunc(events, func(e packngo.Event) bool { return e.Type == "provisioning.110" }) {
		o.t.Errorf("no event says that the device is ready: %v", events)
	}
	name, tags := "cp-one", []string{"three"}
	d, _, err = o.c.Devices.Update(d.ID, &packngo.DeviceUpdateRequest{Hostname: &name, Tags: &tags})
	o.check("updating a device", err)
	if d.Hostname != name || !slices.Equal(d.Tags, tags) {
		o.t.Errorf("updated to %q %v", d.Hostname, d.Tags)
	}
	return d.ID
}

func (o oldClient) addresses(device string) {
	o.t.Helper()
	place := "ny"
	r, _, err := o.c.ProjectIPs.Create(o.project, &packngo.IPReservationCreateRequest{
		Type: packngo.PublicIPv4, Quantity: 1, Metro: &place, Tags: []string{"vip"}, FailOnApprovalRequired: true,
	})
	o.check("reserving an address", err)
	a, _, err := o.c.DeviceIPs.Assign(device, &packngo.AddressStruct{Address: r.Address})
	o.check("assigning an address", err)
	list, _, err := o.c.ProjectIPs.List(o.project, (&packngo.ListOptions{}).Including("assignments"))
	o.check("listing addresses", err)
	if list[0].ID != r.ID || len(list[0].Assignments) != 1 || list[0].Assignments[0].ID != a.ID {
		o.t.Errorf("the reservation does not come first with its assignment: %v", list[0])
	}
	on, _, err := o.c.DeviceIPs.List(device, nil)
	o.check("listing the addresses of a device", err)
	if !slices.ContainsFunc(on, func(x packngo.IPAddressAssignment) bool { return x.Address == r.Address && !x.Management }) {
		o.t.Errorf("the device does not have %s: %v", r.Address, on)
	}
	if _, err := o.c.ProjectIPs.Delete(r.ID); err == nil {
		o.t.Error("a block with an assigned address was given back")
	}
	_, err = o.c.DeviceIPs.Unassign(a.ID)
	o.check("unassigning", err)
	_, err = o.c.ProjectIPs.Delete(r.ID)
	o.check("releasing", err)
	if _, resp, err := o.c.ProjectIPs.Get(r.ID, nil); err == nil || resp.StatusCode != http.StatusNotFound {
		o.t.Errorf("the released block is still there: %v", err)
	}
}

func (o oldClient) bgp(device string) {
	o.t.Helper()
	cfg, _, err := o.c.BGPConfig.Get(o.project, nil)
	o.check("reading BGP that was never enabled", err)
	if cfg.ID != "" {
		o.t.Errorf("config = %v, want none", cfg)
	}
	_, err = o.c.BGPConfig.Create(o.project, packngo.CreateBGPConfigRequest{DeploymentType: "local", Asn: 65000, UseCase: "kubernetes-load-balancer"})
	o.check("enabling BGP", err)
	x, _, err := o.c.BGPSessions.Create(device, packngo.CreateBGPSessionRequest{AddressFamily: "ipv4"})
	o.check("creating a session", err)
	if _, _, err := o.c.BGPSessions.Create(device, packngo.CreateBGPSessionRequest{AddressFamily: "ipv4"}); err == nil {
		o.t.Error("a second session of the same family was created")
	}
	n, _, err := o.c.Devices.ListBGPNeighbors(device, nil)
	o.check("listing neighbors", err)
	if len(n) != 1 || n[0].PeerAs != 65530 || len(n[0].PeerIps) != 2 || n[0].CustomerIP == "" {
		o.t.Errorf("neighbors = %+v", n)
	}
	_, err = o.c.BGPSessions.Delete(x.ID)
	o.check("deleting a session", err)
}

func (o oldClient) power(device string) {
	o.t.Helper()
	_, err := o.c.Devices.PowerOff(device)
	o.check("powering off", err)
	o.awaitState(device, StateInactive)
	_, err = o.c.Devices.PowerOn(device)
	o.check("powering on", err)
	o.awaitState(device, StateActive)
	_, err = o.c.Devices.Reboot(device)
	o.check("rebooting", err)
	o.awaitState(device, StateActive)
	userdata := "#!/bin/sh\ntrue\n" // It was deleted after the first boot.
	_, _, err = o.c.Devices.Update(device, &packngo.DeviceUpdateRequest{UserData: &userdata})
	o.check("setting the userdata of the next boot", err)
	_, err = o.c.Devices.Reinstall(device, &packngo.DeviceReinstallFields{OperatingSystem: "debian_12"})
	o.check("reinstalling", err)
	if d := o.awaitState(device, StateActive); d.OperatingSystem.Slug != "debian_12" {
		o.t.Errorf("reinstalled with %s", d.OperatingSystem.Slug)
	}
}

func (o oldClient) pages() {
	o.t.Helper()
	for range 24 {
		o.create(order(""))
	}
	list, _, err := o.c.Devices.List(o.project, nil)
	o.check("listing devices", err)
	if len(list) != 25 {
		o.t.Errorf("the client found %d devices over all pages, want 25", len(list))
	}
}

func (o oldClient) catalog() {
	o.t.Helper()
	metros, _, err := o.c.Metros.List(nil)
	o.check("listing metros", err)
	facilities, _, err := o.c.Facilities.List(nil)
	o.check("listing facilities", err)
	plans, _, err := o.c.Plans.List(nil)
	o.check("listing plans", err)
	systems, _, err := o.c.OperatingSystems.List()
	o.check("listing operating systems", err)
	if len(metros) == 0 || len(facilities) == 0 || len(plans) == 0 || len(systems) == 0 {
		o.t.Errorf("%d metros, %d facilities, %d plans, %d systems", len(metros), len(facilities), len(plans), len(systems))
	}
	level, _, err := o.c.CapacityService.ListMetros()
	o.check("listing capacity", err)
	if (*level)["da"]["c3.small.x86"].Level != "normal" {
		o.t.Errorf("capacity in da = %v", (*level)["da"])
	}
	in, _, err := o.c.CapacityService.CheckMetros(&packngo.CapacityInput{Servers: []packngo.ServerInfo{{Metro: "da", Plan: "c3.small.x86", Quantity: 2}}})
	o.check("checking capacity", err)
	if !in.Servers[0].Available {
		o.t.Error("there is no capacity")
	}
	hw, _, err := o.c.HardwareReservations.List(o.project, nil)
	o.check("listing reservations", err)
	if len(hw) != 0 {
		o.t.Errorf("reservations = %v", hw)
	}
}

func (o oldClient) remove(device string) {
	o.t.Helper()
	_, err := o.c.Devices.Delete(device, true)
	o.check("deleting", err)
	o.awaitDeleted(device)
	_, resp, err := o.c.Devices.Get(device, nil)
	if err == nil || resp.StatusCode != http.StatusNotFound {
		o.t.Errorf("a deleted device answers %v", err)
	}
}
