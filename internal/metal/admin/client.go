// Package client talks to a metal of this host for the command line: it finds
// the endpoint and the token in the home, and turns refusals into errors that
// say what to do. It is no client for controllers. Start with Open.
package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/drover-dev/drover/internal/metal"
	"github.com/drover-dev/drover/internal/metal/api"
)

const perPage = 250

// Client makes calls with one token.
type Client struct {
	URL   string
	token string
}

// Open finds the metal of a home and uses its admin token.
func Open(h metal.Home) (*Client, error) {
	e, err := h.ReadEndpoint()
	if err != nil {
		return nil, err
	}
	token, err := h.AdminToken()
	if err != nil {
		return nil, err
	}
	return &Client{URL: e.URL, token: token}, nil
}

// Do makes a call and decodes the answer into out, unless that is nil.
func (c *Client) Do(ctx context.Context, method, path string, body, out any) error {
	resp, err := c.send(ctx, method, path, body)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if out == nil {
		return nil
	}
	if err := json.NewDecoder(resp.Body).Decode(out); err != nil {
		return fmt.Errorf("reading the answer to %s %s: %w", method, path, err)
	}
	return nil
}

// Stream makes a GET and copies the answer as it comes.
func (c *Client) Stream(ctx context.Context, path string, w io.Writer) error {
	resp, err := c.send(ctx, http.MethodGet, path, nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, err = io.Copy(w, resp.Body)
	return err
}

func (c *Client) send(ctx context.Context, method, path string, body any) (*http.Response, error) {
	var payload io.Reader
	if body != nil {
		data, err := json.Marshal(body)
		if err != nil {
			return nil, fmt.Errorf("encoding the request: %w", err)
		}
		payload = bytes.NewReader(data)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.URL+path, payload)
	if err != nil {
		return nil, err
	}
	req.Header.Set("X-Auth-Token", c.token)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if errors.Is(err, syscall.ECONNREFUSED) {
		return nil, fmt.Errorf("nobody answers at %s: start metal with `drover up` or `drover metal serve`", c.URL)
	}
	if err != nil {
		return nil, fmt.Errorf("calling metal: %w", err)
	}
	if resp.StatusCode >= http.StatusBadRequest {
		defer resp.Body.Close()
		return nil, refusal(resp)
	}
	return resp, nil
}

func refusal(resp *http.Response) error {
	var e api.Error
	data, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<16))
	if json.Unmarshal(data, &e) != nil || len(e.Errors) == 0 {
		e.Errors = []string{strings.TrimSpace(string(data))}
	}
	return &RefusalError{Status: resp.StatusCode, Reasons: e.Errors}
}

// RefusalError is an answer that is no good.
type RefusalError struct {
	Status  int
	Reasons []string
}

func (e *RefusalError) Error() string {
	return fmt.Sprintf("metal answered %d: %s", e.Status, strings.Join(e.Reasons, "; "))
}

// IsGone tells whether err means that what was asked for is not there.
func IsGone(err error) bool {
	var refusal *RefusalError
	return errors.As(err, &refusal) && refusal.Status == http.StatusNotFound
}

// Devices lists all devices, over all pages.
func (c *Client) Devices(ctx context.Context, filter url.Values) ([]api.Device, error) {
	var all []api.Device
	query := url.Values{"per_page": {strconv.Itoa(perPage)}, "exclude": {"userdata"}}
	for key, values := range filter {
		query[key] = values
	}
	for page := 1; ; page++ {
		query.Set("page", strconv.Itoa(page))
		var out api.Devices
		if err := c.Do(ctx, http.MethodGet, "/drover/v1/devices?"+query.Encode(), nil, &out); err != nil {
			return nil, err
		}
		all = append(all, out.Devices...)
		if out.Meta.Next == nil {
			return all, nil
		}
	}
}

// Projects lists all projects.
func (c *Client) Projects(ctx context.Context) ([]api.Project, error) {
	var all []api.Project
	for page := 1; ; page++ {
		var out api.Projects
		if err := c.Do(ctx, http.MethodGet, fmt.Sprintf("/projects?per_page=%d&page=%d", perPage, page), nil, &out); err != nil {
			return nil, err
		}
		all = append(all, out.Projects...)
		if out.Meta.Next == nil {
			return all, nil
		}
	}
}

// FindDevice finds one device by id, by the beginning of it, or by hostname.
func (c *Client) FindDevice(ctx context.Context, name string) (api.Device, error) {
	all, err := c.Devices(ctx, url.Values{"search": {name}})
	if err != nil {
		return api.Device{}, err
	}
	all = slices.DeleteFunc(all, func(d api.Device) bool {
		return !strings.EqualFold(d.Hostname, name) && !strings.HasPrefix(d.ID, strings.ToLower(name))
	})
	switch len(all) {
	case 0:
		return api.Device{}, fmt.Errorf("there is no machine %q: see `drover machine list`", name)
	case 1:
		return all[0], nil
	default:
		return api.Device{}, fmt.Errorf("%d machines are called %q: name one by its id, see `drover machine list`", len(all), name)
	}
}
