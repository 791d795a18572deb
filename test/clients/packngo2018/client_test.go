// Package packngo2018 uses the metal API with packngo as it was in July 2018: facilities are
// strings, bodies are in the first generation's encodings, and unknown values break lists.
package packngo2018

import (
	"os"
	"testing"
	"time"

	"github.com/packethost/packngo"
)

// key is a public key as the ssh-keygen command writes it, with a newline.
const key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHqW9kS1r3T8bXlDkUu6m0Yc5h5uJm1u7l5nq0sV6b2E\n"

type client struct {
	*packngo.Client
	t       *testing.T
	project string
}

// newClient returns a client of the administrator with a project of its own.
func newClient(t *testing.T) client {
	t.Helper()
	c, err := packngo.NewClientWithBaseURL("test", os.Getenv("METAL_ADMIN_TOKEN"), nil, os.Getenv("METAL_API_URL")+"/")
	if err != nil {
		t.Fatal(err)
	}
	p, _, err := c.Projects.Create(&packngo.ProjectCreateRequest{Name: "old"})
	check(t, "creating a project", err)
	return client{c, t, p.ID}
}

func check(t *testing.T, what string, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

func (c client) order(change func(*packngo.DeviceCreateRequest)) (*packngo.Device, error) {
	req := &packngo.DeviceCreateRequest{
		Hostname: "old", Facility: "ewr1", Plan: "baremetal_0", OS: "ubuntu_16_04", BillingCycle: "hourly", ProjectID: c.project,
	}
	change(req)
	d, _, err := c.Devices.Create(req)
	return d, err
}

func (c client) awaitActive(id string) *packngo.Device {
	c.t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		d, _, err := c.Devices.Get(id)
		check(c.t, "getting a device", err)
		if d.State == "active" {
			return d
		}
	}
	c.t.Fatal("the device is not active after a minute")
	return nil
}

func TestKeysOfFiles(t *testing.T) {
	c := newClient(t)
	k, _, err := c.SSHKeys.Create(&packngo.SSHKeyCreateRequest{Label: "file", Key: key, ProjectID: c.project})
	check(t, "creating a key", err)
	d, err := c.order(func(*packngo.DeviceCreateRequest) {})
	check(t, "ordering a device", err)
	if _, _, err := c.Devices.GetExtra(d.ID, []string{"ssh_keys"}, nil); err != nil {
		t.Errorf("including the keys of a device: %v", err)
	}
	list, _, err := c.SSHKeys.ProjectList(c.project)
	check(t, "listing keys", err)
	if len(list) != 1 || list[0].ID != k.ID || list[0].FingerPrint == "" {
		t.Errorf("keys = %v", list)
	}
}

func TestCustomData(t *testing.T) {
	c := newClient(t)
	d, err := c.order(func(req *packngo.DeviceCreateRequest) {
		req.CustomData = `{"rack": 7}`
		req.Storage = `{"disks": []}`
	})
	check(t, "ordering a device with custom data", err)
	list, _, err := c.Devices.List(c.project, nil)
	check(t, "listing devices", err)
	if len(list) != 1 || list[0].ID != d.ID || list[0].CustomData["rack"] != 7.0 || list[0].Storage["disks"] == nil {
		t.Errorf("devices = %v", list)
	}
	if _, err := c.order(func(req *packngo.DeviceCreateRequest) { req.CustomData = "text" }); err == nil {
		t.Error("custom data that is no JSON was accepted")
	}
}

func TestFacilities(t *testing.T) {
	c := newClient(t)
	for _, code := range []string{"ewr1", "sjc1", "nrt1", "ams1", "dfw1", "dfw2", "iad1", "iad2", "ord1", "lax1", "sea1", "atl1", "fra1", "fra2", "sin1", "syd1", "hkg1", "yyz1", "mrs1", "msp1"} {
		d, err := c.order(func(req *packngo.DeviceCreateRequest) { req.Facility = code })
		if err != nil {
			t.Errorf("ordering in %s: %v", code, err)
			continue
		}
		if d.Facility.Code != code {
			t.Errorf("ordered in %s, got %s", code, d.Facility.Code)
		}
	}
	if _, err := c.order(func(req *packngo.DeviceCreateRequest) { req.Facility = "nowhere" }); err == nil {
		t.Error("an unknown facility was accepted")
	}
}

// TestLife takes a device and an address through their lives, and deletes the project while the
// device is being deprovisioned and the address is reserved.
func TestLife(t *testing.T) {
	c := newClient(t)
	u, _, err := c.Users.Current()
	check(t, "getting the user", err)
	if u.ID == "" {
		t.Error("the user has no ID")
	}
	d, err := c.order(func(req *packngo.DeviceCreateRequest) { req.SpotInstance, req.SpotPriceMax = true, 0.5 })
	check(t, "ordering a device", err)
	c.awaitActive(d.ID)
	r, _, err := c.ProjectIPs.Request(c.project, &packngo.IPReservationRequest{Type: "public_ipv4", Quantity: 1, Facility: "ewr1"})
	check(t, "reserving an address", err)
	a, _, err := c.DeviceIPs.Assign(d.ID, &packngo.AddressStruct{Address: r.Address})
	check(t, "assigning the address", err)
	_, err = c.DeviceIPs.Unassign(a.ID)
	check(t, "unassigning the address", err)
	_, err = c.Devices.PowerOff(d.ID)
	check(t, "powering off", err)
	_, err = c.Devices.Delete(d.ID)
	check(t, "deleting the device", err)
	_, err = c.Projects.Delete(c.project)
	check(t, "deleting the project", err)
	if _, _, err := c.Projects.Get(c.project); err == nil {
		t.Error("the project is still there")
	}
}
