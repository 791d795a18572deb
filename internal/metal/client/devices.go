package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// Device is a machine.
type Device struct {
	ID          string         `json:"id"`
	Hostname    string         `json:"hostname"`
	State       string         `json:"state"`
	Tags        []string       `json:"tags"`
	IPAddresses []IPAssignment `json:"ip_addresses"`
	Facility    *Location      `json:"facility"`
	Metro       *Location      `json:"metro"`
	Plan        *Plan          `json:"plan"`
	CreatedAt   string         `json:"created_at"`
	// Upgrade is the last upgrade of its Kubernetes in place, or nil.
	Upgrade *KubernetesUpgrade `json:"kubernetes_upgrade"`
	// Upgradable reports whether its Kubernetes can be upgraded in place.
	Upgradable bool `json:"kubernetes_upgradable"`
}

// KubernetesUpgrade is an upgrade of the Kubernetes of a device in place.
type KubernetesUpgrade struct {
	Version   string    `json:"version"`
	State     string    `json:"state"`
	Message   string    `json:"message"`
	ChangedAt time.Time `json:"changed_at"`
}

// States of upgrades.
const (
	UpgradePending   = "pending"
	UpgradeSucceeded = "succeeded"
	UpgradeFailed    = "failed"
)

// Location is a metro or a facility.
type Location struct {
	Code string `json:"code"`
}

// MetroCode returns the metro's code, or "" if the response has none.
func (d *Device) MetroCode() string { return d.Metro.code() }

// FacilityCode returns the facility's code, or "" if the response has none.
func (d *Device) FacilityCode() string { return d.Facility.code() }

func (l *Location) code() string {
	if l == nil {
		return ""
	}
	return l.Code
}

// DeviceOrder requests a device. Empty fields are not sent.
type DeviceOrder struct {
	Metro                 string   `json:"metro,omitempty"`
	Facility              []string `json:"facility,omitempty"`
	Hostname              string   `json:"hostname"`
	Plan                  string   `json:"plan"`
	OperatingSystem       string   `json:"operating_system"`
	BillingCycle          string   `json:"billing_cycle,omitempty"`
	IPXEScriptURL         string   `json:"ipxe_script_url,omitempty"`
	HardwareReservationID string   `json:"hardware_reservation_id,omitempty"`
	Tags                  []string `json:"tags,omitempty"`
	Userdata              string   `json:"userdata,omitempty"`
	SSHKeys               []SSHKey `json:"ssh_keys,omitempty"`
	ProjectSSHKeys        []string `json:"project_ssh_keys,omitempty"`
	NoSSHKeys             bool     `json:"no_ssh_keys,omitempty"`
}

// Device returns one device.
func (c *Client) Device(ctx context.Context, id string) (*Device, error) {
	d := &Device{}
	r := call{method: http.MethodGet, path: "/devices/" + url.PathEscape(id)}
	if err := c.do(ctx, r, d); err != nil {
		return nil, err
	}
	if d.ID == "" {
		return nil, r.fail(&Error{Kind: Unavailable, Err: errNoID})
	}
	return d, nil
}

// Event is an event of a device, reported by the API or by the machine itself.
type Event struct {
	Type string `json:"type"`
	Body string `json:"body"`
}

// latestEvents is the number of events to request: more than a machine reports in one boot.
const latestEvents = 100

// Events returns the latest events of a device, newest first.
func (c *Client) Events(ctx context.Context, device string) ([]Event, error) {
	var out struct {
		Events []Event `json:"events"`
	}
	query := url.Values{"per_page": {strconv.Itoa(latestEvents)}}
	err := c.do(ctx, call{method: http.MethodGet, path: "/devices/" + url.PathEscape(device) + "/events", query: query}, &out)
	return out.Events, err
}

// DevicesWithTag returns all devices of a project with the tag. It also filters the response, since
// old servers ignore the filter.
func (c *Client) DevicesWithTag(ctx context.Context, project, tag string) ([]Device, error) {
	all, err := c.devices(ctx, project, url.Values{"tag": {tag}})
	return having(all, tag, func(d Device) []string { return d.Tags }), err
}

// Devices returns all devices of a project.
func (c *Client) Devices(ctx context.Context, project string) ([]Device, error) {
	return c.devices(ctx, project, url.Values{})
}

func (c *Client) devices(ctx context.Context, project string, query url.Values) ([]Device, error) {
	query.Set("exclude", "userdata")
	r := call{path: "/projects/" + url.PathEscape(project) + "/devices", query: query}
	return list(ctx, r, func(ctx context.Context, r call) (page[Device], error) {
		var out struct {
			Devices []Device `json:"devices"`
			Meta    *meta    `json:"meta"`
		}
		err := c.do(ctx, r, &out)
		return page[Device]{out.Devices, out.Meta}, err
	})
}

// OrderDevice creates a device.
func (c *Client) OrderDevice(ctx context.Context, project string, order DeviceOrder) (*Device, error) {
	d := &Device{}
	path := "/projects/" + url.PathEscape(project) + "/devices"
	r := call{method: http.MethodPost, path: path, body: order}
	if err := c.do(ctx, r, d); err != nil {
		return nil, err
	}
	if d.ID == "" {
		return nil, r.fail(&Error{Kind: UnknownOutcome, Err: errNoID})
	}
	return d, nil
}

// UpgradeDevice upgrades the Kubernetes of a device in place. It returns once the upgrade has
// started, and may be repeated.
func (c *Client) UpgradeDevice(ctx context.Context, id, version string) error {
	body := map[string]string{"type": "upgrade", "kubernetes_version": version}
	return c.do(ctx, call{method: http.MethodPost, path: "/devices/" + url.PathEscape(id) + "/actions", body: body}, nil)
}

// DeleteDevice deletes a device in any state. It returns once deletion has started.
func (c *Client) DeleteDevice(ctx context.Context, id string) error {
	query := url.Values{"force_delete": {"true"}}
	return c.do(ctx, call{method: http.MethodDelete, path: "/devices/" + url.PathEscape(id), query: query}, nil)
}

// having returns the items with the tag.
func having[T any](items []T, tag string, tags func(T) []string) []T {
	var kept []T
	for _, item := range items {
		for _, t := range tags(item) {
			if t == tag {
				kept = append(kept, item)
				break
			}
		}
	}
	return kept
}
