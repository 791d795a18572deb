package client

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"path"
)

var errNoID = errors.New("the response has no ID")

// IPAssignment is an address assigned to a device.
type IPAssignment struct {
	ID            string    `json:"id"`
	Href          string    `json:"href"`
	Address       string    `json:"address"`
	AddressFamily int       `json:"address_family"`
	Public        bool      `json:"public"`
	Management    bool      `json:"management"`
	AssignedTo    *Hyperref `json:"assigned_to"`
}

// Identity returns the assignment's ID, which short responses contain only in their link.
func (a IPAssignment) Identity() string {
	if a.ID != "" {
		return a.ID
	}
	return Hyperref{a.Href}.Identity()
}

// DeviceID returns the device that has the address, or "" if the response does not include it.
func (a IPAssignment) DeviceID() string {
	if a.AssignedTo == nil {
		return ""
	}
	return a.AssignedTo.Identity()
}

// Hyperref links to another object.
type Hyperref struct {
	Href string `json:"href"`
}

// Identity returns the ID at the end of the link.
func (h Hyperref) Identity() string {
	if h.Href == "" {
		return ""
	}
	return path.Base(h.Href)
}

// IPReservation is an elastic address of a project.
type IPReservation struct {
	ID          string         `json:"id"`
	Address     string         `json:"address"`
	Type        string         `json:"type"`
	Management  bool           `json:"management"`
	Tags        []string       `json:"tags"`
	State       string         `json:"state"`
	Assignments []IPAssignment `json:"assignments"`
	Facility    *Location      `json:"facility"`
	Metro       *Location      `json:"metro"`
	CreatedAt   string         `json:"created_at"`
}

// AddressRequest requests an elastic address.
type AddressRequest struct {
	Type                   string   `json:"type"`
	Quantity               int      `json:"quantity"`
	Facility               string   `json:"facility,omitempty"`
	Metro                  string   `json:"metro,omitempty"`
	FailOnApprovalRequired bool     `json:"fail_on_approval_required"`
	Tags                   []string `json:"tags,omitempty"`
}

// ElasticAddresses returns the public IPv4 reservations of a project, without those of devices.
func (c *Client) ElasticAddresses(ctx context.Context, project string) ([]IPReservation, error) {
	r := call{
		path:  "/projects/" + url.PathEscape(project) + "/ips",
		query: url.Values{"types": {"public_ipv4"}, "include": {"assignments"}},
	}
	all, err := list(ctx, r, func(ctx context.Context, r call) (page[IPReservation], error) {
		var out struct {
			IPAddresses []IPReservation `json:"ip_addresses"`
			Meta        *meta           `json:"meta"`
		}
		err := c.do(ctx, r, &out)
		return page[IPReservation]{out.IPAddresses, out.Meta}, err
	})
	var elastic []IPReservation
	for _, ip := range all {
		if !ip.Management && (ip.Type == "public_ipv4" || ip.Type == "") {
			elastic = append(elastic, ip)
		}
	}
	return elastic, err
}

// ElasticAddress returns one reservation.
func (c *Client) ElasticAddress(ctx context.Context, id string) (*IPReservation, error) {
	ip := &IPReservation{}
	r := call{method: http.MethodGet, path: "/ips/" + url.PathEscape(id), query: url.Values{"include": {"assignments"}}}
	if err := c.do(ctx, r, ip); err != nil {
		return nil, err
	}
	return ip, nil
}

// Assignment returns one assignment.
func (c *Client) Assignment(ctx context.Context, id string) (*IPAssignment, error) {
	a := &IPAssignment{}
	if err := c.do(ctx, call{method: http.MethodGet, path: "/ips/" + url.PathEscape(id)}, a); err != nil {
		return nil, err
	}
	return a, nil
}

// ReserveAddress reserves a new elastic address.
func (c *Client) ReserveAddress(ctx context.Context, project string, request AddressRequest) (*IPReservation, error) {
	ip := &IPReservation{}
	r := call{method: http.MethodPost, path: "/projects/" + url.PathEscape(project) + "/ips", body: request}
	if err := c.do(ctx, r, ip); err != nil {
		return nil, err
	}
	if ip.ID == "" || ip.Address == "" {
		return nil, r.fail(&Error{Kind: UnknownOutcome, Err: errNoID})
	}
	return ip, nil
}

// DeleteAddress releases a reservation, or unassigns an address from its device.
func (c *Client) DeleteAddress(ctx context.Context, id string) error {
	return c.do(ctx, call{method: http.MethodDelete, path: "/ips/" + url.PathEscape(id)}, nil)
}

// AssignAddress assigns an elastic address to a device.
func (c *Client) AssignAddress(ctx context.Context, device, address string) (*IPAssignment, error) {
	a := &IPAssignment{}
	body := struct {
		Address string `json:"address"`
	}{address}
	return a, c.do(ctx, call{method: http.MethodPost, path: "/devices/" + url.PathEscape(device) + "/ips", body: body}, a)
}
