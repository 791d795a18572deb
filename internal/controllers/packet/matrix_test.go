package packet_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	infrav1 "github.com/drover-dev/drover/api/infrastructure/v1beta1"
	"github.com/drover-dev/drover/internal/metal/client"
	"github.com/drover-dev/drover/internal/metal/fault"
)

// request is a call of the provider, as the API sees it.
type request struct {
	method, path string
	// machines is the number of machines that cause it; one if zero.
	machines int
	// kubeVIP means that only clusters with that VIP manager make it.
	kubeVIP bool
	// short means that only APIs with short responses need it.
	short bool
}

// requests are all calls of the provider, by client method.
var requests = map[string]request{
	"Device":           {method: "GET", path: "/devices/*"},
	"DevicesWithTag":   {method: "GET", path: "/projects/*/devices"},
	"OrderDevice":      {method: "POST", path: "/projects/*/devices", machines: 2},
	"DeleteDevice":     {method: "DELETE", path: "/devices/*", machines: 2},
	"Events":           {method: "GET", path: "/devices/*/events"},
	"ElasticAddresses": {method: "GET", path: "/projects/*/ips"},
	"ElasticAddress":   {method: "GET", path: "/ips/*"},
	"Assignment":       {method: "GET", path: "/ips/*", machines: 2, short: true},
	"ReserveAddress":   {method: "POST", path: "/projects/*/ips"},
	"AssignAddress":    {method: "POST", path: "/devices/*/ips", machines: 2},
	"DeleteAddress":    {method: "DELETE", path: "/ips/*", machines: 2},
	"ProjectKeys":      {method: "GET", path: "/projects/*/ssh-keys"},
	"ProjectBGP":       {method: "GET", path: "/projects/*/bgp-config", kubeVIP: true},
	"EnableBGP":        {method: "POST", path: "/projects/*/bgp-configs", kubeVIP: true},
	"StartBGPSession":  {method: "POST", path: "/devices/*/bgp/sessions", kubeVIP: true},
	"Plans":            {method: "GET", path: "/projects/*/plans"},
}

// refused are the faults that prevent execution.
var refused = []fault.Fault{
	{Kind: fault.RateLimit, Count: 1},
	{Kind: fault.RateLimitHTML, Count: 1},
	{Kind: fault.ServerError, Count: 1},
	{Kind: fault.ServerError, Status: http.StatusBadGateway, Count: 1},
	{Kind: fault.ServerError, Status: http.StatusServiceUnavailable, Count: 1},
}

var (
	unanswered = fault.Fault{Kind: fault.Timeout, Count: 1}
	truncated  = fault.Fault{Kind: fault.Truncate, Count: 1}
)

// reading are the faults of calls that change nothing: every fault, one after the other.
var reading = map[string][]fault.Fault{"every fault": append(slices.Clone(refused), unanswered, truncated)}

// writing are the faults of calls that change something. If only the response is lost, no other
// fault may help to find out.
var writing = map[string][]fault.Fault{
	"429, 403 with a page, 5xx": refused,
	"no answer":                 {unanswered},
	"a truncated body":          {truncated},
	"no answer, afterwards":     {{Kind: fault.Timeout, Count: 1, After: true}},
	"5xx, afterwards":           {{Kind: fault.ServerError, Status: http.StatusServiceUnavailable, Count: 1, After: true}},
	"403 with a page, afterwards, though that says that nothing was done": {{Kind: fault.RateLimitHTML, Count: 1, After: true}},
}

// elsewhere are calls that no cluster of the matrix makes, by reason.
var elsewhere = map[string]string{
	"CanHave":       "commands make this request before a cluster exists",
	"Devices":       "recoveries of management clusters make this request",
	"UpgradeDevice": "upgrades in place make this request: package upgrade repeats it until it succeeds",
}

func TestMatrixCoversEveryCall(t *testing.T) {
	var want, got []string
	kind := reflect.TypeFor[*client.Client]()
	for i := range kind.NumMethod() {
		if name := kind.Method(i).Name; elsewhere[name] == "" {
			want = append(want, name)
		}
	}
	for name := range requests {
		got = append(got, name)
	}
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("calls (-client +matrix): a new call needs a line in the matrix:\n%s", diff)
	}
}

// TestEveryFaultOnEveryCallRecovers runs a cluster through its whole life while one of its calls
// fails in one way: it starts, its address moves, and it is deleted completely.
func TestEveryFaultOnEveryCallRecovers(t *testing.T) {
	for name, call := range requests {
		faults := writing
		if call.method == http.MethodGet {
			faults = reading
		}
		for what, sequence := range faults {
			t.Run(name+": "+what, func(t *testing.T) { survive(t, call, sequence) })
		}
	}
}

func survive(t *testing.T, call request, sequence []fault.Fault) {
	t.Helper()
	l := newLife(t)
	l.Access.HTTP = &http.Client{}
	if slices.ContainsFunc(sequence, func(f fault.Fault) bool { return f.Kind == fault.Timeout }) {
		l.Access.HTTP.Timeout = 250 * time.Millisecond
	}
	var left func() int
	if call.short {
		l.Access.HTTP.Transport = shortAnswers{http.DefaultTransport}
	} else {
		left = l.failAll(call, sequence)
	}
	l.begin(options{
		machines: max(call.machines, 1),
		cluster: func(c *infrav1.PacketCluster) {
			if call.kubeVIP {
				c.Spec.VIPManager = infrav1.VIPManagerKubeVIP
			}
		},
		machine: func(s *infrav1.PacketMachineSpec) { s.SSHKeys = []string{"mine"} },
	})
	l.until("the cluster is up", l.up)
	l.checkOwned(len(l.machines), 1)
	if call.short { // only the ID distinguishes the two kinds of objects
		call.path = "/ips/" + l.assignment()
		left = l.failAll(call, sequence)
	}
	l.moveEndpoint()
	l.end()
	if n := left(); n != 0 {
		t.Fatalf("faults were to strike %d times more: this proves nothing", n)
	}
	l.checkOwned(0, 0)
}

// failAll injects one fault after the other into a call, and returns a function that counts the
// remaining ones.
func (l *life) failAll(call request, sequence []fault.Fault) (left func() int) {
	l.t.Helper()
	var all []func() int
	for _, f := range sequence {
		f.Method, f.Path = call.method, call.path
		struck := l.fail(f)
		all = append(all, func() int { return f.Count - struck() })
	}
	return func() int {
		n := 0
		for _, one := range all {
			n += one()
		}
		return n
	}
}

// assignment returns the ID of the assignment of the endpoint's address.
func (l *life) assignment() string {
	l.t.Helper()
	var ip struct{ Assignments []struct{ ID string } }
	l.call(http.MethodGet, "/ips/"+l.cluster.Status.Endpoint.ReservationID, nil, &ip)
	return ip.Assignments[0].ID
}

// shortAnswers replaces the assignments of an address with links, as APIs do by default.
type shortAnswers struct{ http.RoundTripper }

func (s shortAnswers) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := s.RoundTripper.RoundTrip(r)
	if err != nil || r.Method != http.MethodGet || !strings.Contains(r.URL.Path, "/ips/") {
		return res, err
	}
	body, _ := io.ReadAll(res.Body) // half of a truncated response
	_ = res.Body.Close()
	body = shorten(body)
	res.Body, res.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	res.Header.Set("Content-Length", strconv.Itoa(len(body)))
	return res, nil
}

// shorten ignores unknown content.
func shorten(body []byte) []byte {
	var object map[string]any
	_ = json.Unmarshal(body, &object)
	assignments, found := object["assignments"].([]any)
	if !found {
		return body
	}
	for i, a := range assignments {
		if full, ok := a.(map[string]any); ok {
			assignments[i] = map[string]any{"href": full["href"]}
		}
	}
	short, err := json.Marshal(object)
	if err != nil {
		return body
	}
	return short
}

// TestUnavailableDevicesAreFinallyCreated covers faults of devices instead of calls.
func TestUnavailableDevicesAreFinallyCreated(t *testing.T) {
	for name, tc := range map[string]struct {
		fault    fault.Fault
		reserved bool
	}{
		"out of capacity":                            {fault: fault.Fault{Kind: fault.NoCapacity, Count: 4}},
		"failing provisioning on demand, then 403":   {fault: fault.Fault{Kind: fault.FailProvisioning, Count: 2, Hostname: "cp0"}},
		"failing provisioning on demand, then 404":   {fault: fault.Fault{Kind: fault.FailProvisioning, Count: 2, Hostname: "cp0", Status: http.StatusNotFound}},
		"failing provisioning of a reserved server":  {fault: fault.Fault{Kind: fault.FailProvisioning, Count: 2, Hostname: "cp0"}, reserved: true},
		"slow provisioning":                          {fault: fault.Fault{Kind: fault.SlowProvisioning, Count: 2, Delay: fault.Duration(time.Second)}},
		"a quota of addresses":                       {fault: fault.Fault{Kind: fault.AddressQuota, Count: 2}},
		"a project whose devices must have SSH keys": {fault: fault.Fault{Kind: fault.RequireSSHKeys}},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLife(t)
			if tc.fault.Kind != "" {
				struck := l.fail(tc.fault)
				defer func() {
					if tc.fault.Count > 0 && struck() != tc.fault.Count {
						t.Errorf("the fault struck %d times, want %d", struck(), tc.fault.Count)
					}
				}()
			}
			if tc.reserved {
				for range 2 {
					l.call(http.MethodPost, "/drover/v1/projects/"+l.Project+"/hardware-reservations", map[string]string{"plan": "c3.small.x86", "metro": "da"}, nil)
				}
			}
			l.begin(options{machines: 2, machine: func(s *infrav1.PacketMachineSpec) {
				if tc.reserved {
					s.HardwareReservationID = "next-available"
				}
			}})
			l.until("the cluster is up", l.up)
			l.checkOwned(2, 1)
			l.end()
			l.checkOwned(0, 0)
		})
	}
}
