package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestDecodeMessages(t *testing.T) {
	for body, want := range map[string][]string{
		"":                                nil,
		"<html>":                          nil,
		"null":                            nil,
		"[]":                              nil,
		"{}":                              nil,
		`{"errors":[]}`:                   nil,
		`{"errors":["",null]}`:            nil,
		`{"errors":["a","b"]}`:            {"a", "b"},
		`{"errors":"a"}`:                  {"a"},
		`{"error":"a"}`:                   {"a"},
		`{"errors":["a"],"error":"b"}`:    {"a", "b"},
		`{"errors":{"plan":["is gone"]}}`: {`{"plan":["is gone"]}`},
		`{"errors":[7,true]}`:             {"7", "true"},
		`{"message":"from a proxy"}`:      nil,
	} {
		if diff := cmp.Diff(want, decodeMessages([]byte(body))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", body, diff)
		}
	}
}

func TestPause(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	for name, tt := range map[string]struct {
		header, value string
		want          time.Duration
	}{
		"nothing":               {"X", "", defaultPause},
		"seconds":               {"Retry-After", "7", 7 * time.Second},
		"at least one second":   {"Retry-After", "0", time.Second},
		"a negative number":     {"Retry-After", "-5", time.Second},
		"at most a quarter":     {"Retry-After", "86400", maxPause},
		"beyond all bounds":     {"Retry-After", "9223372036854775807", maxPause},
		"a date":                {"Retry-After", now.Add(time.Minute).Format(http.TimeFormat), time.Minute},
		"a date in the past":    {"Retry-After", now.Add(-time.Minute).Format(http.TimeFormat), time.Second},
		"garbage":               {"Retry-After", "soon", defaultPause},
		"the end of a period":   {"X-RateLimit-Reset", strconv.FormatInt(now.Add(time.Minute).Unix(), 10), time.Minute},
		"a period without end":  {"X-RateLimit-Reset", "99999999999", maxPause},
		"a period that is over": {"X-RateLimit-Reset", "0", time.Second},
	} {
		h := http.Header{}
		h.Set(tt.header, tt.value)
		if got := pause(h, now); got != tt.want {
			t.Errorf("%s: got %s, want %s", name, got, tt.want)
		}
		h.Set("Date", now.Format(http.TimeFormat))
		for _, years := range []int{-1, 1} {
			if got := pause(h, now.AddDate(years, 0, 0)); got != tt.want {
				t.Errorf("%s, by a clock that is %d years ahead: %s, want %s", name, years, got, tt.want)
			}
		}
	}
}

func TestReason(t *testing.T) {
	for want, err := range map[string]*Error{
		"no plan; no metro (HTTP 422)":                               {Status: 422, Messages: []string{"no plan", "no metro"}},
		"Not Found (HTTP 404)":                                       {Status: 404},
		"no response in time":                                        {Err: context.DeadlineExceeded},
		"the connection was closed before the response was complete": {Err: fmt.Errorf("reading: %w", io.ErrUnexpectedEOF)},
		"dial: connection refused":                                   {Err: &url.Error{Op: "Get", URL: "http://127.0.0.1:31337", Err: &net.OpError{Op: "dial", Err: errors.New("connection refused")}}},
		"the response has no ID":                                     {Err: errNoID},
	} {
		if got := err.Reason(); got != want {
			t.Errorf("reason %q, want %q", got, want)
		}
		err.Method, err.Path = "GET", "/devices"
		if got := err.Error(); got != "GET /devices: "+want {
			t.Errorf("error %q", got)
		}
	}
}

func TestUnsent(t *testing.T) {
	for name, tt := range map[string]struct {
		method string
		err    error
		want   Kind
	}{
		"an order that was not sent":  {"POST", &net.OpError{Op: "dial", Err: os.ErrDeadlineExceeded}, Unavailable},
		"a host that does not exist":  {"POST", &net.DNSError{Name: "x"}, Unavailable},
		"an order without an answer":  {"POST", &net.OpError{Op: "read", Err: io.EOF}, UnknownOutcome},
		"an order that took too long": {"POST", context.DeadlineExceeded, UnknownOutcome},
		"a read can be repeated":      {"GET", io.EOF, Unavailable},
		"a deletion can be repeated":  {"DELETE", io.EOF, Unavailable},
	} {
		if got := unsent(tt.method, tt.err); got.Kind != tt.want || !errors.Is(got, tt.err) {
			t.Errorf("%s: %s", name, got.Kind)
		}
	}
}

func TestKinds(t *testing.T) {
	err := fmt.Errorf("ordering: %w", &Error{Kind: Invalid, Messages: []string{"Project must have at least one SSH Key"}})
	if !Is(err, Quota, Invalid) || Is(err, Quota) || Is(err) || Is(nil, Invalid) || Is(errors.New("x"), Invalid) || KindOf(nil) != "" {
		t.Errorf("kind %q of %v", KindOf(err), err)
	}
	if !MissingKeys(err) || MissingKeys(&Error{Kind: Quota, Messages: []string{"ssh key"}}) || MissingKeys(errors.New("ssh key")) {
		t.Error("MissingKeys doesn't recognize exactly the error about missing SSH keys")
	}
}

func TestIdentities(t *testing.T) {
	for want, got := range map[string]string{
		"":   Hyperref{}.Identity(),
		"a":  Hyperref{"/metal/v1/devices/a"}.Identity(),
		"b":  IPAssignment{ID: "b", Href: "/ips/x"}.Identity(),
		"c":  IPAssignment{Href: "/ips/c"}.Identity(),
		"d":  IPAssignment{AssignedTo: &Hyperref{"/devices/d"}}.DeviceID(),
		"am": (&Device{Metro: &Location{"am"}}).MetroCode(),
		"a1": (&Device{Facility: &Location{"a1"}}).FacilityCode(),
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if (IPAssignment{}).DeviceID()+(&Device{}).MetroCode()+(&Device{}).FacilityCode() != "" {
		t.Error("what is missing has a name")
	}
}

func TestHavingSelectsItemsByTag(t *testing.T) {
	items := [][]string{{"a", "b"}, {"b", "b"}, nil, {"ab"}}
	tags := func(tags []string) []string { return tags }
	if diff := cmp.Diff([][]string{{"a", "b"}, {"b", "b"}}, having(items, "b", tags)); diff != "" {
		t.Errorf("items (-want +got):\n%s", diff)
	}
	if got := having(items, "", tags); got != nil {
		t.Errorf("no tag selects %v", got)
	}
}

func TestGateRemembersTheLongestPause(t *testing.T) {
	var g gate
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	at := func(s int) time.Time { return now.Add(time.Duration(s) * time.Second) }
	if g.closed(now) != nil {
		t.Fatal("it is closed from the beginning")
	}
	g.close(now, &Error{Kind: NotFound, After: time.Hour})
	if g.closed(now) != nil {
		t.Error("it closes for an error that is not about the token")
	}
	g.close(now, &Error{Kind: RateLimited, After: 10 * time.Second})
	g.close(at(1), &Error{Kind: RateLimited, After: 2 * time.Second})
	if e := g.closed(at(4)); e == nil || e.Kind != RateLimited || e.After != 6*time.Second {
		t.Errorf("after 4 s: got %+v, want 6 s more", e)
	}
	if g.closed(at(10)) != nil {
		t.Error("the gate is still closed, want it open")
	}
	g.close(at(20), &Error{Kind: Unauthorized})
	if e := g.closed(at(20 + 59)); e == nil || e.Kind != Unauthorized {
		t.Errorf("a refused token is tried again too soon: %+v", e)
	}
	if g.closed(at(20+60)) != nil {
		t.Error("a refused token is never tried again")
	}
}

// patient returns a client of a server with the handler that waits for a busy machine.
func patient(t *testing.T, handler http.HandlerFunc) *Client {
	t.Helper()
	c := serve(t, handler)
	c.Timeout = time.Minute
	return c
}

func TestCallsOfTheAPI(t *testing.T) {
	type seen struct{ Method, Path, Query, Body string }
	var got seen
	answer := "{}"
	c := patient(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = seen{r.Method, strings.TrimPrefix(r.URL.EscapedPath(), "/metal/v1"), r.URL.Query().Encode(), string(body)}
		fmt.Fprint(w, answer)
	})
	ctx := t.Context()
	for name, tt := range map[string]struct {
		do     func() error
		answer string
		want   seen
		kind   Kind
	}{
		"Device": {
			do:     func() error { _, err := c.Device(ctx, "a/b"); return err },
			answer: `{"id":"x"}`, want: seen{Method: "GET", Path: "/devices/a%2Fb"},
		},
		"Device without an id": {
			do:   func() error { _, err := c.Device(ctx, "a"); return err },
			want: seen{Method: "GET", Path: "/devices/a"}, kind: Unavailable,
		},
		"OrderDevice without an id": {
			do:   func() error { _, err := c.OrderDevice(ctx, "p", DeviceOrder{Hostname: "h"}); return err },
			want: seen{Method: "POST", Path: "/projects/p/devices", Body: `{"hostname":"h","plan":"","operating_system":""}`}, kind: UnknownOutcome,
		},
		"DeleteDevice": {
			do:   func() error { return c.DeleteDevice(ctx, "d") },
			want: seen{Method: "DELETE", Path: "/devices/d", Query: "force_delete=true"},
		},
		"Events": {
			do:   func() error { _, err := c.Events(ctx, "d"); return err },
			want: seen{Method: "GET", Path: "/devices/d/events", Query: "per_page=100"},
		},
		"DevicesWithTag": {
			do:   func() error { _, err := c.DevicesWithTag(ctx, "p", "a:b"); return err },
			want: seen{Method: "GET", Path: "/projects/p/devices", Query: "exclude=userdata&page=1&per_page=250&tag=a%3Ab"},
		},
		"ElasticAddresses": {
			do:   func() error { _, err := c.ElasticAddresses(ctx, "p"); return err },
			want: seen{Method: "GET", Path: "/projects/p/ips", Query: "include=assignments&page=1&per_page=250&types=public_ipv4"},
		},
		"ElasticAddress": {
			do:   func() error { _, err := c.ElasticAddress(ctx, "i"); return err },
			want: seen{Method: "GET", Path: "/ips/i", Query: "include=assignments"},
		},
		"Assignment": {
			do:   func() error { _, err := c.Assignment(ctx, "i"); return err },
			want: seen{Method: "GET", Path: "/ips/i"},
		},
		"ReserveAddress without an address": {
			do: func() error {
				_, err := c.ReserveAddress(ctx, "p", AddressRequest{Type: "public_ipv4", Quantity: 1})
				return err
			},
			answer: `{"id":"i"}`, want: seen{Method: "POST", Path: "/projects/p/ips", Body: `{"type":"public_ipv4","quantity":1,"fail_on_approval_required":false}`}, kind: UnknownOutcome,
		},
		"DeleteAddress": {
			do:   func() error { return c.DeleteAddress(ctx, "i") },
			want: seen{Method: "DELETE", Path: "/ips/i"},
		},
		"AssignAddress": {
			do:   func() error { _, err := c.AssignAddress(ctx, "d", "192.0.2.1/32"); return err },
			want: seen{Method: "POST", Path: "/devices/d/ips", Body: `{"address":"192.0.2.1/32"}`},
		},
		"ProjectKeys": {
			do:   func() error { _, err := c.ProjectKeys(ctx, "p"); return err },
			want: seen{Method: "GET", Path: "/projects/p/ssh-keys"},
		},
		"ProjectBGP": {
			do:   func() error { _, err := c.ProjectBGP(ctx, "p"); return err },
			want: seen{Method: "GET", Path: "/projects/p/bgp-config"},
		},
		"EnableBGP": {
			do:   func() error { return c.EnableBGP(ctx, "p", BGPRequest{ASN: 65000, DeploymentType: "local"}) },
			want: seen{Method: "POST", Path: "/projects/p/bgp-configs", Body: `{"asn":65000,"deployment_type":"local","use_case":""}`},
		},
		"StartBGPSession": {
			do:   func() error { return c.StartBGPSession(ctx, "d") },
			want: seen{Method: "POST", Path: "/devices/d/bgp/sessions", Body: `{"address_family":"ipv4"}`},
		},
		"a broken answer to a read":   {do: func() error { _, err := c.ElasticAddress(ctx, "i"); return err }, answer: "{", want: seen{Method: "GET", Path: "/ips/i", Query: "include=assignments"}, kind: Unavailable},
		"a broken answer to an order": {do: func() error { _, err := c.OrderDevice(ctx, "p", DeviceOrder{}); return err }, answer: "[]", want: seen{Method: "POST", Path: "/projects/p/devices", Body: `{"hostname":"","plan":"","operating_system":""}`}, kind: UnknownOutcome},
	} {
		t.Run(name, func(t *testing.T) {
			answer = "{}"
			if tt.answer != "" {
				answer = tt.answer
			}
			err := tt.do()
			if KindOf(err) != tt.kind || (err == nil) != (tt.kind == "") {
				t.Errorf("error %v of kind %q, want kind %q", err, KindOf(err), tt.kind)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("request (-want +got):\n%s", diff)
			}
		})
	}
}

func TestElasticAddressesLeavesOutThoseOfDevices(t *testing.T) {
	c := patient(t, func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"ip_addresses":[{"id":"a","type":"public_ipv4"},{"id":"b","management":true},{"id":"c"},{"id":"d","type":"private_ipv4"}]}`)
	})
	all, err := c.ElasticAddresses(t.Context(), "p")
	if err != nil || len(all) != 2 || all[0].ID != "a" || all[1].ID != "c" {
		t.Errorf("addresses %+v, error %v", all, err)
	}
}

func TestCanHave(t *testing.T) {
	var path string
	var body struct{ Servers []map[string]string }
	c := patient(t, func(w http.ResponseWriter, r *http.Request) {
		path = strings.TrimPrefix(r.URL.Path, "/metal/v1")
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		fmt.Fprint(w, `{"servers":[{"available":true},{"available":false}]}`)
	})
	got, err := c.CanHave(t.Context(), []Demand{{Plan: "c3", Metro: "am", Quantity: 2}, {Plan: "m3", Metro: "am", Quantity: 1}, {Plan: "x", Metro: "am"}})
	if err != nil || !cmp.Equal(got, []bool{true, false, false}) || path != "/capacity/metros" {
		t.Errorf("answers %v of %s, error %v", got, path, err)
	}
	if diff := cmp.Diff(map[string]string{"plan": "c3", "metro": "am", "quantity": "2"}, body.Servers[0]); diff != "" {
		t.Errorf("question (-want +got):\n%s", diff)
	}
	if _, err := c.CanHave(t.Context(), []Demand{{Plan: "c3", Facility: "am1", Quantity: 1}}); err != nil || path != "/capacity" {
		t.Errorf("got a request at %s, error %v, want one at /capacity", path, err)
	}
}

func TestPlansOfServersThatKnowNoProjects(t *testing.T) {
	c := patient(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/metal/v1/plans" {
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, `{"errors":["Not found"]}`)
			return
		}
		fmt.Fprint(w, `{"plans":[{"slug":"c3.small"}]}`)
	})
	plans, err := c.Plans(t.Context(), "p")
	if err != nil || len(plans) != 1 || plans[0].Slug != "c3.small" {
		t.Errorf("plans %+v, error %v", plans, err)
	}
}
