package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clocktesting "k8s.io/utils/clock/testing"
)

func TestClassify(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	const page = "<html><body>Request blocked</body></html>"
	for _, tc := range []struct {
		name   string
		answer answer
		want   Kind
		after  time.Duration
	}{
		{name: "success", answer: answer{status: 201}},
		{name: "rate limit with seconds", answer: answer{status: 429, header: http.Header{"Retry-After": {"7"}}}, want: RateLimited, after: 7 * time.Second},
		{name: "rate limit with a time", answer: answer{status: 429, header: http.Header{"X-Ratelimit-Reset": {"1000020"}}}, want: RateLimited, after: 20 * time.Second},
		{name: "rate limit that ended already", answer: answer{status: 429, header: http.Header{"X-Ratelimit-Reset": {"1"}}}, want: RateLimited, after: time.Second},
		{name: "rate limit that asks for too much", answer: answer{status: 429, header: http.Header{"Retry-After": {"999999"}}}, want: RateLimited, after: maxPause},
		{name: "rate limit without a time", answer: answer{status: 429, body: []byte(page)}, want: RateLimited, after: defaultPause},
		{name: "403 with a page is a limiter", answer: answer{status: 403, body: []byte(page)}, want: RateLimited, after: defaultPause},
		{name: "403 without a body is a limiter", answer: answer{status: 403}, want: RateLimited, after: defaultPause},
		{name: "403 of an exhausted budget is a limiter", answer: answer{status: 403, body: []byte(`{"error":"no"}`), header: http.Header{"X-Ratelimit-Remaining": {"0"}}}, want: RateLimited, after: defaultPause},
		{name: "403 of the API", answer: answer{status: 403, body: []byte(`{"errors":["You are not authorized to view this device"]}`)}, want: Forbidden},
		{name: "401", answer: answer{status: 401}, want: Unauthorized},
		{name: "404 of the API", answer: answer{status: 404, body: []byte(`{"errors":["Not found"]}`)}, want: NotFound},
		{name: "404 of something else", answer: answer{status: 404, body: []byte(page)}, want: Unavailable},
		{name: "404 of a gateway that speaks JSON", answer: answer{status: 404, body: []byte(`{"message":"no route matched"}`)}, want: Unavailable},
		{name: "500 of a read", answer: answer{method: "GET", status: 500}, want: Unavailable},
		{name: "500 of an order", answer: answer{method: "POST", status: 500}, want: UnknownOutcome},
		{name: "502 of an order, with a page", answer: answer{method: "POST", status: 502, body: []byte(page)}, want: UnknownOutcome},
		{name: "500 of a removal", answer: answer{method: "DELETE", status: 500}, want: Unavailable},
		{name: "503 of a read", answer: answer{method: "GET", status: 503}, want: Unavailable},
		{name: "503 of an order, which a proxy also says of a connection that broke", answer: answer{method: "POST", status: 503}, want: UnknownOutcome},
		{name: "503 without reservations", answer: answer{method: "POST", status: 503, body: []byte(`{"errors":["There are no available hardware reservations for this plan"]}`)}, want: Capacity},
		{name: "no capacity in a facility", answer: answer{status: 422, body: []byte(`{"errors":["The facility ewr1 has no provisionable c3.small.x86 servers matching your criteria"]}`)}, want: Capacity},
		{name: "no capacity in a metro", answer: answer{status: 422, body: []byte(`{"errors":["There aren't available servers in that metro"]}`)}, want: Capacity},
		{name: "a reservation that is not free yet", answer: answer{status: 422, body: []byte(`{"errors":["Server is not provisionable"]}`)}, want: Capacity},
		{name: "a reservation that is none", answer: answer{status: 422, body: []byte(`{"errors":["abc is not a valid hardware reservation"]}`)}, want: Invalid},
		{name: "a message that is no list", answer: answer{status: 422, body: []byte(`{"errors":"Server is not provisionable"}`)}, want: Capacity},
		{name: "messages by field", answer: answer{status: 422, body: []byte(`{"errors":{"base":["Server is not provisionable"]}}`)}, want: Capacity},
		{name: "a facility that is none", answer: answer{status: 422, body: []byte(`{"errors":["ewr9 is not a valid facility"]}`)}, want: Invalid},
		{name: "a device that is provisioning", answer: answer{status: 422, body: []byte(`{"errors":["Cannot delete a device while it is provisioning"]}`)}, want: Busy},
		{name: "a second BGP session", answer: answer{status: 422, body: []byte(`{"errors":["ipv4 already has session"]}`)}, want: Exists},
		{name: "too many addresses", answer: answer{path: "/projects/p/ips", status: 422, body: []byte(`{"errors":["limit reached"]}`)}, want: Quota},
		{name: "too large", answer: answer{status: 413, body: []byte(page)}, want: Invalid},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if tc.answer.header == nil {
				tc.answer.header = http.Header{}
			}
			got := classify(tc.answer, now)
			if got == nil {
				got = &Error{}
			}
			if got.Kind != tc.want || got.After != tc.after {
				t.Errorf("got %s after %s, want %s after %s", got.Kind, got.After, tc.want, tc.after)
			}
		})
	}
}

// FuzzClassify searches for responses without a classification.
func FuzzClassify(f *testing.F) {
	f.Add(500, `{"errors":["a"]}`, "") // more are in testdata
	now := time.Unix(1_000_000, 0)
	f.Fuzz(func(t *testing.T, status int, body, wait string) {
		for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodDelete} {
			header := http.Header{"Retry-After": {wait}, "X-Ratelimit-Reset": {wait}}
			e := classify(answer{method: method, path: "/ips", status: status, header: header, body: []byte(body)}, now)
			success := status >= 200 && status < 300
			if success != (e == nil) {
				t.Fatalf("%s answered %d %q: %v", method, status, body, e)
			}
			if e == nil {
				continue
			}
			if e.Kind == "" || e.Reason() == "" || (e.Kind == RateLimited) != (e.After > 0) || e.After > maxPause {
				t.Errorf("%s answered %d %q: kind %q, %q, after %s", method, status, body, e.Kind, e.Reason(), e.After)
			}
			explained := json.Valid([]byte(body)) && strings.Contains(strings.ToLower(body), "error")
			if Is(e, NotFound, Forbidden) && !explained {
				t.Errorf("%q: got NotFound or Forbidden without an explanation, want another error", body)
			}
		}
	})
}

// serve returns a client of a server with the handler.
func serve(t *testing.T, handler http.HandlerFunc) *Client {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	c, err := New(Options{URL: server.URL + "/metal/v1/", Token: "secret", Timeout: 300 * time.Millisecond, Clock: clocktesting.NewFakePassiveClock(time.Now())})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestLostResponses(t *testing.T) {
	for name, handler := range map[string]http.HandlerFunc{
		"closed": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"truncated": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			fmt.Fprint(w, `{"id":`)
		},
		"no JSON":  func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") },
		"no id":    func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "{}") },
		"too late": func(http.ResponseWriter, *http.Request) { time.Sleep(time.Second) },
	} {
		t.Run(name, func(t *testing.T) {
			c := serve(t, handler)
			if _, err := c.OrderDevice(t.Context(), "p", DeviceOrder{}); !Is(err, UnknownOutcome) {
				t.Errorf("an order: %v", err)
			}
			if err := c.DeleteDevice(t.Context(), "d"); err != nil && !Is(err, Unavailable) {
				t.Errorf("a removal: %v", err)
			}
		})
	}
	t.Run("never sent", func(t *testing.T) {
		c, err := New(Options{URL: "http://127.0.0.1:1"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.OrderDevice(t.Context(), "p", DeviceOrder{}); !Is(err, Unavailable) {
			t.Errorf("an order that was never sent: %v", err)
		}
	})
}

func TestErrorsAreDeterministicAndOmitTheToken(t *testing.T) {
	c := serve(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	_, first := c.Device(t.Context(), "d")
	_, second := c.Device(t.Context(), "d")
	if first.Error() != second.Error() || strings.Contains(first.Error(), "secret") || !strings.HasPrefix(first.Error(), "GET /devices/d: ") {
		t.Errorf("%q, then %q", first, second)
	}
}

func TestAllPagesAreRead(t *testing.T) {
	t.Run("with more devices than a page holds", func(t *testing.T) {
		c := serve(t, func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprintf(w, `{"devices":[{"id":"%s","tags":["x"]}],"meta":{"total":3,"last_page":3}}`, r.URL.Query().Get("page"))
		})
		got, err := c.DevicesWithTag(t.Context(), "p", "x")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"1", "2", "3"}, ids(got)); diff != "" {
			t.Errorf("devices (-want +got):\n%s", diff)
		}
	})
	t.Run("restarted if the list changed", func(t *testing.T) {
		calls := 0
		c := serve(t, func(w http.ResponseWriter, r *http.Request) {
			calls++
			total := 4
			if calls > 1 {
				total = 2
			}
			fmt.Fprintf(w, `{"devices":[{"id":"%s","tags":["x"]}],"meta":{"total":%d,"last_page":2}}`, r.URL.Query().Get("page"), total)
		})
		got, err := c.DevicesWithTag(t.Context(), "p", "x")
		if err != nil || len(got) != 2 || calls != 4 {
			t.Errorf("%d devices after %d calls: %v", len(got), calls, err)
		}
	})
	t.Run("and devices without the tag are left out, should the server not do it", func(t *testing.T) {
		c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, `{"devices":[{"id":"a","tags":["x"]},{"id":"b","tags":["y"]},{"id":"c"}]}`)
		})
		got, _ := c.DevicesWithTag(t.Context(), "p", "x")
		if diff := cmp.Diff([]string{"a"}, ids(got)); diff != "" {
			t.Errorf("devices (-want +got):\n%s", diff)
		}
	})
	t.Run("an error on a later page is an error", func(t *testing.T) {
		c := serve(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Query().Get("page") == "2" {
				w.WriteHeader(http.StatusBadGateway)
				return
			}
			fmt.Fprint(w, `{"devices":[],"meta":{"total":3,"last_page":2}}`)
		})
		if _, err := c.DevicesWithTag(t.Context(), "p", "x"); !Is(err, Unavailable) {
			t.Errorf("got %v", err)
		}
	})
}

func ids(devices []Device) []string {
	var out []string
	for _, d := range devices {
		out = append(out, d.ID)
	}
	return out
}

func TestRejectedTokenBlocksFurtherRequests(t *testing.T) {
	for _, tc := range []struct {
		name   string
		status int
		want   Kind
		pause  time.Duration
	}{
		{"a limit, as long as the API says", http.StatusTooManyRequests, RateLimited, 10 * time.Second},
		{"a token that is not valid, for a minute", http.StatusUnauthorized, Unauthorized, time.Minute},
	} {
		t.Run(tc.name, func(t *testing.T) {
			calls := 0
			c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				calls++
				w.Header().Set("Retry-After", "10")
				w.WriteHeader(tc.status)
			})
			for range 5 {
				if _, err := c.Device(t.Context(), "d"); !Is(err, tc.want) {
					t.Fatal(err)
				}
			}
			if calls != 1 {
				t.Errorf("%d requests were sent", calls)
			}
			c.Clock.(*clocktesting.FakePassiveClock).SetTime(c.Clock.Now().Add(tc.pause))
			if _, err := c.Device(context.Background(), "d"); err == nil || calls != 2 {
				t.Errorf("%d requests after the pause", calls)
			}
		})
	}
}

func TestRequestHeaders(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		want := map[string]string{"X-Auth-Token": "secret", "Accept": "application/json", "Content-Type": "application/json", "X-Consumer-Token": "drover"}
		for key, value := range want {
			if got := r.Header.Get(key); got != value {
				t.Errorf("%s is %q, want %q", key, got, value)
			}
		}
		if r.URL.Path != "/metal/v1/projects/p/devices" {
			t.Errorf("path is %s", r.URL.Path)
		}
		w.WriteHeader(http.StatusCreated)
		fmt.Fprint(w, `{"id":"d","something":{"new":1},"metro":null}`)
	})
	d, err := c.OrderDevice(t.Context(), "p", DeviceOrder{Hostname: "h"})
	if err != nil || d.ID != "d" || d.MetroCode() != "" || d.FacilityCode() != "" {
		t.Errorf("%+v, %v", d, err)
	}
}

func TestNewRejectsInvalidURLs(t *testing.T) {
	for _, url := range []string{"", "api.example", "ftp://x", "http://"} {
		if _, err := New(Options{URL: url}); err == nil {
			t.Errorf("%q was taken", url)
		}
	}
}
