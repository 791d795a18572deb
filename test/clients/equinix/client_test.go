// Package equinix uses the metal API with the Equinix SDK, which is generated from the API's
// description: it rejects states and types that are not in it, and unknown fields of reservations.
package equinix

import (
	"context"
	"os"
	"slices"
	"testing"
	"time"

	metal "github.com/equinix/equinix-sdk-go/services/metalv1"
)

// key is a public key as the ssh-keygen command writes it, with a newline.
const key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHqW9kS1r3T8bXlDkUu6m0Yc5h5uJm1u7l5nq0sV6b2E\n"

type client struct {
	*metal.APIClient
	t       *testing.T
	ctx     context.Context
	project string
}

// newClient returns a client of the administrator with a project of its own.
func newClient(t *testing.T) client {
	t.Helper()
	config := metal.NewConfiguration()
	config.Servers = metal.ServerConfigurations{{URL: os.Getenv("METAL_API_URL") + "/metal/v1"}}
	config.AddDefaultHeader("X-Auth-Token", os.Getenv("METAL_ADMIN_TOKEN"))
	c := client{metal.NewAPIClient(config), t, t.Context(), ""}
	p, _, err := c.ProjectsApi.CreateProject(c.ctx).ProjectCreateFromRootInput(*metal.NewProjectCreateFromRootInput("sdk")).Execute()
	check(t, "creating a project", err)
	c.project = p.GetId()
	return c
}

func check(t *testing.T, what string, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

func (c client) order(change func(*metal.DeviceCreateInMetroInput)) (*metal.Device, error) {
	req := metal.NewDeviceCreateInMetroInput("da", "ubuntu_24_04", "c3.small.x86")
	req.SetHostname("sdk")
	change(req)
	d, _, err := c.DevicesApi.CreateDevice(c.ctx, c.project).CreateDeviceRequest(metal.DeviceCreateInMetroInputAsCreateDeviceRequest(req)).Execute()
	return d, err
}

func (c client) awaitActive(id string) *metal.Device {
	c.t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		d, _, err := c.DevicesApi.FindDeviceById(c.ctx, id).Include([]string{"ssh_keys", "project"}).Execute()
		check(c.t, "getting a device", err)
		if d.GetState() == metal.DEVICESTATE_ACTIVE {
			return d
		}
	}
	c.t.Fatal("the device is not active after a minute")
	return nil
}

func TestKeysOfFiles(t *testing.T) {
	c := newClient(t)
	in := metal.NewSSHKeyCreateInput()
	in.SetLabel("file")
	in.SetKey(key)
	k, _, err := c.SSHKeysApi.CreateProjectSSHKey(c.ctx, c.project).SSHKeyCreateInput(*in).Execute()
	check(t, "creating a key", err)
	for query, want := range map[string]int{"file": 1, "other": 0} {
		list, _, err := c.SSHKeysApi.FindProjectSSHKeys(c.ctx, c.project).Query(query).Execute()
		check(t, "listing keys", err)
		if len(list.GetSshKeys()) != want {
			t.Errorf("%q finds %d keys", query, len(list.GetSshKeys()))
		}
	}
	d, err := c.order(func(*metal.DeviceCreateInMetroInput) {})
	check(t, "ordering a device", err)
	d = c.awaitActive(d.GetId())
	keys := d.GetSshKeys()
	if len(keys) != 1 || keys[0].AdditionalProperties["id"] != k.GetId() {
		t.Errorf("included keys = %+v", keys)
	}
	if p := d.GetProject(); p.GetName() != "sdk" {
		t.Errorf("included project = %+v", p)
	}
}

func TestReservedAddress(t *testing.T) {
	c := newClient(t)
	in := metal.NewIPReservationRequestInput(2, "public_ipv4")
	in.SetMetro("da")
	out, _, err := c.IPAddressesApi.RequestIPReservation(c.ctx, c.project).
		RequestIPReservationRequest(metal.IPReservationRequestInputAsRequestIPReservationRequest(in)).Execute()
	check(t, "reserving addresses", err)
	id := out.IPReservation.GetId()
	d, err := c.order(func(req *metal.DeviceCreateInMetroInput) {
		public, private := metal.NewIPAddress(), metal.NewIPAddress()
		private.SetAddressFamily(4)
		private.SetPublic(false)
		public.SetAddressFamily(4)
		public.SetPublic(true)
		public.SetCidr(31)
		public.SetIpReservations([]string{id})
		req.SetIpAddresses([]metal.IPAddress{*private, *public})
	})
	check(t, "ordering a device", err)
	d = c.awaitActive(d.GetId())
	list, _, err := c.IPAddressesApi.FindIPReservations(c.ctx, c.project).Include([]string{"assignments", "project"}).Execute()
	check(t, "listing reservations", err)
	i := slices.IndexFunc(list.GetIpAddresses(), func(r metal.IPReservationListIpAddressesInner) bool {
		return r.IPReservation != nil && r.IPReservation.GetId() == id
	})
	if i < 0 {
		t.Fatalf("the reservation is not listed: %+v", list.GetIpAddresses())
	}
	if n := len(list.GetIpAddresses()[i].IPReservation.GetAssignments()); n != 1 {
		t.Errorf("the reservation has %d assignments, want one", n)
	}
}

func TestAccount(t *testing.T) {
	c := newClient(t)
	u, _, err := c.UsersApi.FindCurrentUser(c.ctx).Execute()
	check(t, "getting the user", err)
	if u.GetDefaultOrganizationId() == "" {
		t.Errorf("user = %+v", u)
	}
	d, err := c.order(func(req *metal.DeviceCreateInMetroInput) { req.SetCustomdata(map[string]any{"rack": 7}) })
	check(t, "ordering a device", err)
	d = c.awaitActive(d.GetId())
	for _, p := range d.GetNetworkPorts() {
		found, _, err := c.PortsApi.FindPortById(c.ctx, p.GetId()).Execute()
		check(t, "getting a port", err)
		if found.GetName() != p.GetName() {
			t.Errorf("port %s is called %s", p.GetName(), found.GetName())
		}
	}
	events, _, err := c.EventsApi.FindEvents(c.ctx).PerPage(3).Execute()
	check(t, "listing events", err)
	if len(events.GetEvents()) != 3 {
		t.Errorf("%d events", len(events.GetEvents()))
	}
	_, _, err = c.PlansApi.FindPlans(c.ctx).Slug("c3.small.x86").Include([]string{"available_in_metros"}).Execute()
	check(t, "listing plans", err)
	list, _, err := c.DevicesApi.FindProjectDevices(c.ctx, c.project).Search("SDK").Execute()
	check(t, "searching devices", err)
	if found := list.GetDevices(); len(found) != 1 || found[0].GetCustomdata()["rack"] != 7.0 {
		t.Errorf("devices = %+v", found)
	}
}

func TestSessionsAreIncluded(t *testing.T) {
	c := newClient(t)
	_, err := c.BGPApi.RequestBgpConfig(c.ctx, c.project).
		BgpConfigRequestInput(*metal.NewBgpConfigRequestInput(65000, metal.BGPCONFIGREQUESTINPUTDEPLOYMENTTYPE_LOCAL)).Execute()
	check(t, "enabling BGP", err)
	d, err := c.order(func(*metal.DeviceCreateInMetroInput) {})
	check(t, "ordering a device", err)
	in := metal.NewBGPSessionInput()
	in.SetAddressFamily(metal.BGPSESSIONINPUTADDRESSFAMILY_IPV4)
	x, _, err := c.DevicesApi.CreateBgpSession(c.ctx, d.GetId()).BGPSessionInput(*in).Execute()
	check(t, "creating a session", err)
	config, _, err := c.BGPApi.FindBgpConfigByProject(c.ctx, c.project).Include([]string{"sessions"}).Execute()
	check(t, "getting the configuration", err)
	if s := config.GetSessions(); len(s) != 1 || s[0].GetId() != x.GetId() || s[0].GetAddressFamily() == "" {
		t.Errorf("sessions = %+v", s)
	}
}

func TestProjectDeletion(t *testing.T) {
	c := newClient(t)
	in := metal.NewIPReservationRequestInput(1, "public_ipv4")
	in.SetMetro("da")
	_, _, err := c.IPAddressesApi.RequestIPReservation(c.ctx, c.project).
		RequestIPReservationRequest(metal.IPReservationRequestInputAsRequestIPReservationRequest(in)).Execute()
	check(t, "reserving an address", err)
	d, err := c.order(func(*metal.DeviceCreateInMetroInput) {})
	check(t, "ordering a device", err)
	_, err = c.DevicesApi.DeleteDevice(c.ctx, d.GetId()).ForceDelete(true).Execute()
	check(t, "deleting the device", err)
	_, err = c.ProjectsApi.DeleteProject(c.ctx, c.project).Execute()
	check(t, "deleting the project", err)
}
