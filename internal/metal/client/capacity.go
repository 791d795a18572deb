package client

import (
	"context"
	"net/http"
	"strconv"
)

// Demand is a number of devices of one plan in one location.
type Demand struct {
	Plan, Metro, Facility string
	Quantity              int
}

// CanHave reports for each demand whether it could be met now. It reserves nothing.
func (c *Client) CanHave(ctx context.Context, demands []Demand) ([]bool, error) {
	type server struct {
		Plan     string `json:"plan"`
		Metro    string `json:"metro,omitempty"`
		Facility string `json:"facility,omitempty"`
		Quantity string `json:"quantity"`
	}
	var check struct {
		Servers []server `json:"servers"`
	}
	var answer struct {
		Servers []struct {
			Available bool `json:"available"`
		} `json:"servers"`
	}
	path := "/capacity/metros"
	for _, d := range demands {
		if d.Metro == "" {
			path = "/capacity"
		}
		check.Servers = append(check.Servers, server{Plan: d.Plan, Metro: d.Metro, Facility: d.Facility, Quantity: strconv.Itoa(d.Quantity)})
	}
	if err := c.do(ctx, call{method: http.MethodPost, path: path, body: check}, &answer); err != nil {
		return nil, err
	}
	out := make([]bool, len(demands))
	for i := range out {
		out[i] = i < len(answer.Servers) && answer.Servers[i].Available
	}
	return out, nil
}
