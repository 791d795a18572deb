package packettest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

func (a *API) device(id string) *Device {
	for _, d := range a.devices {
		if d.ID == id {
			return d
		}
	}
	return nil
}

func (a *API) listDevices(w http.ResponseWriter, r *http.Request, project string) {
	tag := r.URL.Query().Get("tag")
	items := []any{}
	for _, d := range a.devices {
		if d.Project == project && !d.Hidden && (tag == "" || slices.Contains(d.Tags, tag)) {
			items = append(items, a.render(d))
		}
	}
	page(w, r, "devices", items, 10)
}

func (a *API) createDevice(w http.ResponseWriter, r *http.Request, project string) {
	body := decode(r)
	a.orders = append(a.orders, body)
	d := &Device{
		ID: newID(), Project: project, Hostname: text(body, "hostname"), State: "queued", Metro: text(body, "metro"),
		Plan: text(body, "plan"), Tags: texts(body, "tags"), created: a.now(), private: fmt.Sprintf("10.0.%d.%d", a.serial/250, a.serial%250+2),
	}
	if facility := texts(body, "facility"); len(facility) > 0 {
		d.Facility = facility[0]
	}
	a.devices = append(a.devices, d)
	write(w, http.StatusCreated, a.render(d))
}

func (a *API) getDevice(w http.ResponseWriter, id string) {
	d := a.device(id)
	switch {
	case d == nil:
		refuse(w, http.StatusNotFound, "Not found")
	case d.Hidden:
		refuse(w, http.StatusForbidden, "You are not authorized to view this device")
	default:
		write(w, http.StatusOK, a.render(d))
	}
}

// listEvents lists the newest first.
func (a *API) listEvents(w http.ResponseWriter, r *http.Request, id string) {
	d := a.device(id)
	if d == nil || d.Hidden {
		refuse(w, http.StatusNotFound, "Not found")
		return
	}
	events := slices.Clone(d.Events)
	slices.Reverse(events)
	page(w, r, "events", events, 10)
}

func (a *API) deleteDevice(w http.ResponseWriter, id string) {
	d := a.device(id)
	if d == nil || d.Hidden {
		refuse(w, http.StatusNotFound, "Not found")
		return
	}
	d.State = "deprovisioning"
	for _, ip := range a.addresses {
		if ip.Device == id {
			ip.Assignment, ip.Device = "", ""
		}
	}
	w.WriteHeader(http.StatusNoContent)
}

// render omits unknown locations, as the API does.
func (a *API) render(d *Device) map[string]any {
	out := map[string]any{
		"id": d.ID, "hostname": d.Hostname, "state": d.State, "tags": d.Tags, "created_at": d.created.Format(time.RFC3339),
		"plan": map[string]any{"slug": d.Plan}, "ip_addresses": a.addressesOf(d),
	}
	if d.Metro != "" {
		out["metro"] = map[string]any{"code": d.Metro}
	}
	if d.Facility != "" {
		out["facility"] = map[string]any{"code": d.Facility}
	}
	return out
}

func (a *API) addressesOf(d *Device) []map[string]any {
	list := []map[string]any{}
	if d.State == "queued" {
		return list
	}
	list = append(list,
		map[string]any{"id": d.ID + "-pub", "address": strings.Replace(d.private, "10.", "198.", 1), "public": true, "management": true, "address_family": 4},
		map[string]any{"id": d.ID + "-priv", "address": d.private, "public": false, "management": true, "address_family": 4})
	for _, ip := range a.addresses {
		if ip.Device == d.ID {
			list = append(list, map[string]any{"id": ip.Assignment, "address": ip.Address, "public": true, "address_family": 4})
		}
	}
	return list
}

func (a *API) startSession(w http.ResponseWriter, id string) {
	d := a.device(id)
	if d == nil {
		refuse(w, http.StatusNotFound, "Not found")
		return
	}
	d.Sessions++
	if d.Sessions > 1 {
		refuse(w, http.StatusUnprocessableEntity, "ipv4 already has session")
		return
	}
	write(w, http.StatusCreated, map[string]any{"id": newID()})
}

func (a *API) bgpConfig(w http.ResponseWriter, project string) {
	if !a.bgp[project] {
		write(w, http.StatusOK, map[string]any{})
		return
	}
	write(w, http.StatusOK, map[string]any{"id": newID(), "status": "enabled"})
}

func (a *API) listAddresses(w http.ResponseWriter, r *http.Request, project string) {
	items := []any{}
	for _, d := range a.devices { // the list includes the blocks of devices
		items = append(items, map[string]any{"id": d.ID + "-block", "type": "public_ipv4", "management": true, "address": "198.51.100.0"})
	}
	for _, ip := range a.addresses {
		if ip.Project == project {
			items = append(items, ip.render())
		}
	}
	page(w, r, "ip_addresses", items, 250)
}

func (a *API) reserve(w http.ResponseWriter, r *http.Request, project string) {
	body := decode(r)
	ip := a.add(&Address{Project: project, Metro: text(body, "metro"), Tags: texts(body, "tags")})
	write(w, http.StatusCreated, ip.render())
}

func (a *API) add(ip *Address) *Address {
	ip.ID, ip.created = newID(), a.now()
	if ip.Address == "" {
		ip.Address = fmt.Sprintf("203.0.113.%d", len(a.addresses)+1)
	}
	a.addresses = append(a.addresses, ip)
	return ip
}

func (ip *Address) render() map[string]any {
	assignments := []any{}
	if ip.Assignment != "" { // short, like many responses
		assignments = append(assignments, map[string]any{"href": "/metal/v1/ips/" + ip.Assignment})
	}
	return map[string]any{
		"id": ip.ID, "address": ip.Address, "type": "public_ipv4", "tags": ip.Tags, "assignments": assignments,
		"created_at": ip.created.Format(time.RFC3339), "metro": map[string]any{"code": ip.Metro},
	}
}

func (a *API) getAddress(w http.ResponseWriter, id string) {
	for _, ip := range a.addresses {
		switch id {
		case ip.ID:
			write(w, http.StatusOK, ip.render())
			return
		case ip.Assignment:
			write(w, http.StatusOK, map[string]any{
				"id": ip.Assignment, "address": ip.Address, "assigned_to": map[string]any{"href": "/metal/v1/devices/" + ip.Device},
			})
			return
		}
	}
	refuse(w, http.StatusNotFound, "Not found")
}

func (a *API) deleteAddress(w http.ResponseWriter, id string) {
	for i, ip := range a.addresses {
		switch {
		case ip.ID == id && ip.Assignment != "":
			refuse(w, http.StatusUnprocessableEntity, "The address is assigned")
			return
		case ip.ID == id:
			a.addresses = slices.Delete(a.addresses, i, i+1)
			w.WriteHeader(http.StatusNoContent)
			return
		case ip.Assignment == id:
			ip.Assignment, ip.Device = "", ""
			w.WriteHeader(http.StatusNoContent)
			return
		}
	}
	refuse(w, http.StatusNotFound, "Not found")
}

func (a *API) assign(w http.ResponseWriter, r *http.Request, device string) {
	address := text(decode(r), "address")
	for _, ip := range a.addresses {
		if ip.Address != address {
			continue
		}
		if ip.Assignment != "" {
			refuse(w, http.StatusUnprocessableEntity, "Address is already assigned")
			return
		}
		ip.Assignment, ip.Device = newID(), device
		write(w, http.StatusCreated, map[string]any{"id": ip.Assignment, "address": ip.Address})
		return
	}
	refuse(w, http.StatusUnprocessableEntity, "Address is not in the project")
}

// AddDevice adds a device that no client has ordered.
func (a *API) AddDevice(d Device) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	d.ID, d.created, d.private = newID(), a.now(), fmt.Sprintf("10.1.%d.%d", a.serial/250, a.serial%250+2)
	a.devices = append(a.devices, &d)
	return d.ID
}

// AddAddress adds an address that no client has reserved.
func (a *API) AddAddress(ip Address) Address {
	a.mu.Lock()
	defer a.mu.Unlock()
	return *a.add(&ip)
}

// ChangeAddress changes an address, as others who use the API can.
func (a *API) ChangeAddress(id string, change func(*Address)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, ip := range a.addresses {
		if ip.ID == id {
			change(ip)
		}
	}
}

// AddKey adds an SSH key to all projects.
func (a *API) AddKey(k Key) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.keys = append(a.keys, k)
}

// AddPlan adds a plan, given as JSON.
func (a *API) AddPlan(plan string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.plans = append(a.plans, json.RawMessage(plan))
}

// SetState changes the state of a device; "gone" removes it.
func (a *API) SetState(id, state string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if state == "gone" {
		a.devices = slices.DeleteFunc(a.devices, func(d *Device) bool { return d.ID == id })
		return
	}
	a.device(id).State = state
}

// Change modifies a device.
func (a *API) Change(id string, f func(*Device)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	f(a.device(id))
}

// Devices returns the devices of a project in order of creation.
func (a *API) Devices(project string) []Device {
	a.mu.Lock()
	defer a.mu.Unlock()
	var out []Device
	for _, d := range a.devices {
		if d.Project == project {
			out = append(out, *d)
		}
	}
	return out
}

// Addresses returns the addresses of a project.
func (a *API) Addresses(project string) []Address {
	a.mu.Lock()
	defer a.mu.Unlock()
	var out []Address
	for _, ip := range a.addresses {
		if ip.Project == project {
			out = append(out, *ip)
		}
	}
	return out
}

// Orders returns the bodies of all executed requests for devices.
func (a *API) Orders() []map[string]any {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.orders)
}

// BGP reports whether BGP is enabled for a project.
func (a *API) BGP(project string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.bgp[project]
}
