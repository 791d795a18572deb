package client

import (
	"context"
	"net/http"
	"net/url"
)

// SSHKey is a public key.
type SSHKey struct {
	ID    string `json:"id,omitempty"`
	Label string `json:"label"`
	Key   string `json:"key"`
}

// ProjectKeys returns the SSH keys of a project.
func (c *Client) ProjectKeys(ctx context.Context, project string) ([]SSHKey, error) {
	var out struct {
		SSHKeys []SSHKey `json:"ssh_keys"`
	}
	err := c.do(ctx, call{method: http.MethodGet, path: "/projects/" + url.PathEscape(project) + "/ssh-keys"}, &out)
	return out.SSHKeys, err
}

// BGPConfig is the BGP configuration of a project; it has no ID if BGP was never enabled.
type BGPConfig struct {
	ID     string `json:"id"`
	Status string `json:"status"`
}

// BGPRequest enables BGP for a project.
type BGPRequest struct {
	ASN            int    `json:"asn"`
	MD5            string `json:"md5,omitempty"`
	DeploymentType string `json:"deployment_type"`
	UseCase        string `json:"use_case"`
}

// ProjectBGP returns the BGP configuration of a project.
func (c *Client) ProjectBGP(ctx context.Context, project string) (BGPConfig, error) {
	var out BGPConfig
	err := c.do(ctx, call{method: http.MethodGet, path: "/projects/" + url.PathEscape(project) + "/bgp-config"}, &out)
	return out, err
}

// EnableBGP enables BGP for a project.
func (c *Client) EnableBGP(ctx context.Context, project string, request BGPRequest) error {
	return c.do(ctx, call{method: http.MethodPost, path: "/projects/" + url.PathEscape(project) + "/bgp-configs", body: request}, nil)
}

// StartBGPSession creates the IPv4 session of a device.
func (c *Client) StartBGPSession(ctx context.Context, device string) error {
	body := struct {
		AddressFamily string `json:"address_family"`
	}{"ipv4"}
	return c.do(ctx, call{method: http.MethodPost, path: "/devices/" + url.PathEscape(device) + "/bgp/sessions", body: body}, nil)
}

// Plan is a type of device.
type Plan struct {
	Slug  string    `json:"slug"`
	Name  string    `json:"name"`
	Specs PlanSpecs `json:"specs"`
}

// PlanSpecs is the hardware of a plan.
type PlanSpecs struct {
	CPUs []struct {
		Count int    `json:"count"`
		Type  string `json:"type"`
	} `json:"cpus"`
	Memory struct {
		Total string `json:"total"`
	} `json:"memory"`
}

// Plans returns the plans available to the project.
func (c *Client) Plans(ctx context.Context, project string) ([]Plan, error) {
	r := call{path: "/projects/" + url.PathEscape(project) + "/plans"}
	decode := func(ctx context.Context, r call) (page[Plan], error) {
		var out struct {
			Plans []Plan `json:"plans"`
			Meta  *meta  `json:"meta"`
		}
		err := c.do(ctx, r, &out)
		return page[Plan]{out.Plans, out.Meta}, err
	}
	plans, err := list(ctx, r, decode)
	if Is(err, NotFound) { // servers without plans per project
		plans, err = list(ctx, call{path: "/plans"}, decode)
	}
	return plans, err
}
