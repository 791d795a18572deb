// Package admin is the client of commands for the metal service on this host. It finds the endpoint
// and the administrator's token in the home, and its errors say what to do. Controllers use package
// client instead. Start with Open.
package admin

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

// Client sends requests with the administrator's token.
type Client struct {
	URL   string
	token string
	http  *http.Client
	// alive reports whether the service is running. Otherwise another process may have its port.
	alive func() bool
}

// Open returns a client for the metal service of a home. It sends nothing.
func Open(h metal.Home) (*Client, error) {
	e, err := h.ReadEndpoint()
	if err != nil {
		return nil, err
	}
	token, err := h.AdminToken()
	if err != nil {
		return nil, err
	}
	client, err := e.HTTPClient()
	if err != nil {
		return nil, err
	}
	return &Client{URL: e.SecureURL(), token: token, http: client, alive: e.Alive}, nil
}

// Do sends a request and decodes the response into out, unless out is nil.
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
		return fmt.Errorf("reading the response to %s %s: %w", method, path, err)
	}
	return nil
}

// Stream sends a GET request and copies the response as it arrives.
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
	return c.request(ctx, method, path, payload)
}

// post sends a stream.
func (c *Client) post(ctx context.Context, path string, stream io.Reader) (*http.Response, error) {
	if stream == nil {
		stream = http.NoBody
	}
	return c.request(ctx, http.MethodPost, path, stream)
}

func (c *Client) request(ctx context.Context, method, path string, payload io.Reader) (*http.Response, error) {
	if !c.alive() {
		return nil, c.notRunning()
	}
	req, err := http.NewRequestWithContext(ctx, method, c.URL+path, payload)
	if err != nil {
		return nil, err
	}
	req.Header.Set("X-Auth-Token", c.token)
	req.Header.Set("Content-Type", "application/json")
	resp, err := c.http.Do(req)
	if errors.Is(err, syscall.ECONNREFUSED) {
		return nil, c.notRunning()
	}
	if err != nil {
		return nil, fmt.Errorf("calling the metal service: %w", err)
	}
	if resp.StatusCode >= http.StatusMultipleChoices {
		defer resp.Body.Close()
		return nil, statusError(resp)
	}
	return resp, nil
}

func (c *Client) notRunning() error {
	return fmt.Errorf("no metal service at %s: start it with `drover up` or `drover metal serve`", c.URL)
}

func statusError(resp *http.Response) error {
	var e api.Error
	data, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<16))
	if json.Unmarshal(data, &e) != nil || len(e.Errors) == 0 {
		e.Errors = []string{strings.TrimSpace(string(data))}
	}
	return &StatusError{Status: resp.StatusCode, Reasons: e.Errors}
}

// StatusError is a response with the status of an error.
type StatusError struct {
	Status  int
	Reasons []string
}

func (e *StatusError) Error() string {
	return fmt.Sprintf("the metal service responded with %d: %s", e.Status, strings.Join(e.Reasons, "; "))
}

// IsNotFound reports whether err is a response with the status 404.
func IsNotFound(err error) bool {
	var e *StatusError
	return errors.As(err, &e) && e.Status == http.StatusNotFound
}

// Devices lists the devices of all projects, from all pages.
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

// FindDevice returns the device with the ID, the beginning of an ID, or the hostname.
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
		return api.Device{}, fmt.Errorf("machine %q not found: list machines with `drover machine list`", name)
	case 1:
		return all[0], nil
	default:
		return api.Device{}, fmt.Errorf("%d machines are named %q: use the ID from `drover machine list`", len(all), name)
	}
}

// ExecError means that a program ran in a machine and failed, or could not be started there.
type ExecError struct{ Cause, Output string }

func (e *ExecError) Error() string {
	if e.Output == "" {
		return e.Cause
	}
	return e.Cause + ": " + e.Output
}

// Exec runs a program in a machine as root, with stdin as its standard input, and returns its
// output. The machine must be one of this host.
func (c *Client) Exec(ctx context.Context, device string, stdin io.Reader, argv ...string) (string, error) {
	path := "/drover/v1/devices/" + url.PathEscape(device) + "/exec?" + url.Values{"argv": argv}.Encode()
	resp, err := c.post(ctx, path, stdin)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	var out metal.Execution
	if err := json.NewDecoder(resp.Body).Decode(&out); err != nil {
		return "", fmt.Errorf("reading the result of %q: %w", argv[0], err)
	}
	if out.Error != "" {
		return out.Output, &ExecError{Cause: out.Error, Output: strings.TrimSpace(out.Output)}
	}
	return out.Output, nil
}
