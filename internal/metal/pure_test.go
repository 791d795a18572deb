package metal

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-dev/drover/internal/metal/api"
	"github.com/drover-dev/drover/internal/metal/driver"
	"github.com/drover-dev/drover/internal/metal/request"
	"github.com/drover-dev/drover/internal/metal/store"
)

func TestPagesOfAList(t *testing.T) {
	for name, tt := range map[string]struct {
		query          string
		total          int
		offset, last   int
		previous, next string
	}{
		"an empty list":        {"", 0, 0, 1, "", ""},
		"the first page":       {"", 25, 0, 3, "", "/devices?page=2&per_page=10"},
		"one in the middle":    {"page=2&per_page=5&tag=a%3Ab", 12, 5, 3, "/devices?page=1&per_page=5&tag=a%3Ab", "/devices?page=3&per_page=5&tag=a%3Ab"},
		"the last page":        {"page=3", 30, 20, 3, "/devices?page=2&per_page=10", ""},
		"beyond the last page": {"page=9", 30, 80, 3, "/devices?page=3&per_page=10", ""},
		"a page that is huge":  {"per_page=999999", 3, 0, 1, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			c := &call{r: httptest.NewRequest(http.MethodGet, "/devices?"+tt.query, nil)}
			p, err := c.paged(defaultPerPage)
			if err != nil {
				t.Fatal(err)
			}
			m := p.meta(tt.total)
			if p.offset() != tt.offset || m.LastPage != tt.last || m.Total != tt.total || hrefOf(m.Previous) != tt.previous || hrefOf(m.Next) != tt.next {
				t.Errorf("offset %d, last page %d, previous %q, next %q", p.offset(), m.LastPage, hrefOf(m.Previous), hrefOf(m.Next))
			}
		})
	}
	for _, query := range []string{"page=0", "page=-1", "page=one", "per_page=0", "per_page=1.5", "page=99999999999999999999"} {
		c := &call{r: httptest.NewRequest(http.MethodGet, "/devices?"+query, nil)}
		if _, err := c.paged(defaultPerPage); statusOf(err) != http.StatusUnprocessableEntity {
			t.Errorf("%s: error %v", query, err)
		}
	}
}

func hrefOf(h *api.Href) string {
	if h == nil {
		return ""
	}
	return h.Href
}

func statusOf(err error) int {
	var refusal *request.Error
	if errors.As(err, &refusal) {
		return refusal.Status
	}
	return 0
}

func TestSlicesOfAList(t *testing.T) {
	items := []int{0, 1, 2, 3, 4}
	for _, tt := range []struct {
		number, size int
		want         []int
	}{
		{1, 2, []int{0, 1}}, {3, 2, []int{4}}, {4, 2, []int{}}, {1, 100, items}, {maxPage, maxPerPage, []int{}},
	} {
		if diff := cmp.Diff(tt.want, slice(page{number: tt.number, size: tt.size}, items)); diff != "" {
			t.Errorf("page %d of %d items (-want +got):\n%s", tt.number, tt.size, diff)
		}
	}
}

func TestFreePartsOfABlock(t *testing.T) {
	prefix := netip.MustParsePrefix
	for name, tt := range map[string]struct {
		block  store.Block
		length int
		want   []string
	}{
		"all addresses":       {store.Block{Prefix: prefix("192.0.2.0/30")}, 32, []string{"192.0.2.0/32", "192.0.2.1/32", "192.0.2.2/32", "192.0.2.3/32"}},
		"aligned parts":       {store.Block{Prefix: prefix("192.0.2.0/30")}, 31, []string{"192.0.2.0/31", "192.0.2.2/31"}},
		"the block itself":    {store.Block{Prefix: prefix("192.0.2.0/30")}, 30, []string{"192.0.2.0/30"}},
		"more than the block": {store.Block{Prefix: prefix("192.0.2.0/30")}, 29, []string{}},
		"less than nothing":   {store.Block{Prefix: prefix("192.0.2.0/30")}, 33, []string{}},
		"without those in use": {
			store.Block{Prefix: prefix("192.0.2.0/30"), Uses: []store.Use{{Prefix: prefix("192.0.2.1/32")}}}, 31, []string{"192.0.2.2/31"},
		},
		"a block that is pending": {store.Block{}, 32, []string{}},
		"the last of all":         {store.Block{Prefix: prefix("255.255.255.254/31")}, 32, []string{"255.255.255.254/32", "255.255.255.255/32"}},
	} {
		got := []string{}
		for _, part := range freeParts(&tt.block, tt.length) {
			got = append(got, part.String())
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestPrefixes(t *testing.T) {
	for count, want := range map[int]string{1: "192.0.2.4/32", 2: "192.0.2.4/31", 4: "192.0.2.4/30", 256: "192.0.2.4/24"} {
		if got := blockOf(netip.MustParseAddr("192.0.2.4"), count).String(); got != want {
			t.Errorf("%d addresses are %s, want %s", count, got, want)
		}
	}
	for p, want := range map[string]string{"192.0.2.4/32": "192.0.2.4", "192.0.2.4/31": "192.0.2.5", "2001:db8::/127": "2001:db8::1"} {
		if got := lastOf(netip.MustParsePrefix(p)).String(); got != want {
			t.Errorf("the last address of %s is %s, want %s", p, got, want)
		}
	}
	for p, want := range map[string]string{
		"0.0.0.0/0": "0.0.0.0", "192.0.2.0/31": "255.255.255.254", "10.0.0.0/9": "255.128.0.0", "192.0.2.1/32": "255.255.255.255", "2001:db8::/64": "ffff:ffff:ffff:ffff::",
	} {
		if got := netmask(netip.MustParsePrefix(p)); got != want {
			t.Errorf("the mask of %s is %s, want %s", p, got, want)
		}
	}
	if family(netip.MustParseAddr("192.0.2.1")) != 4 || family(netip.MustParseAddr("2001:db8::1")) != 6 {
		t.Error("an address is of the other family")
	}
}

func TestWantedAddress(t *testing.T) {
	v4, v6 := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("2001:db8::1")
	only := []api.DeviceIPRequest{{AddressFamily: 4, Public: false}}
	for _, tt := range []struct {
		wanted []api.DeviceIPRequest
		sample netip.Addr
		public bool
		want   bool
	}{
		{nil, v4, true, true}, {nil, v6, true, true}, {only, v4, false, true}, {only, v4, true, false}, {only, v6, false, false},
	} {
		if _, got := wantedAddress(tt.wanted, tt.sample, tt.public); got != tt.want {
			t.Errorf("%v wants %s, public: %t: %t", tt.wanted, tt.sample, tt.public, got)
		}
	}
}

func TestDeviceQuery(t *testing.T) {
	v, err := url.ParseQuery("search=Web&hostname=WEB-1&metro=AM&facility=AM6&plan=c3.small.x86&reserved=True&tag=Team:A&hardware_reservation_id=R&ip_address=192.0.2.1&unknown=x")
	if err != nil {
		t.Fatal(err)
	}
	want := store.Query{Search: "Web", Terms: []string{
		"hostname:web-1", "metro:am", "facility:am6", "plan:c3.small.x86", "reserved:true", "tag:Team:A", "reservation:R", "ip:192.0.2.1",
	}}
	if diff := cmp.Diff(want, deviceQuery(v)); diff != "" {
		t.Errorf("query (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(store.Query{}, deviceQuery(url.Values{"tag": {""}})); diff != "" {
		t.Errorf("query without filters (-want +got):\n%s", diff)
	}
}

func TestExcludes(t *testing.T) {
	for query, want := range map[string]bool{"": false, "exclude=userdata": true, "exclude=a,userdata": true, "exclude=userdatas": false, "include=userdata": false} {
		if got := excludes(httptest.NewRequest(http.MethodGet, "/?"+query, nil), "userdata"); got != want {
			t.Errorf("%s: got %t, want %t", query, got, want)
		}
	}
}

func TestMayUse(t *testing.T) {
	for _, tt := range []struct {
		who     identity
		project string
		want    bool
	}{
		{identity{admin: true}, "a", true},
		{identity{admin: true}, "", true},
		{identity{project: "a"}, "a", true},
		{identity{project: "a"}, "b", false},
		{identity{}, "", false},
		{identity{}, "a", false},
	} {
		if got := tt.who.mayUse(tt.project); got != tt.want {
			t.Errorf("%+v may use %q: %t", tt.who, tt.project, got)
		}
	}
}

func TestItemsBelowAPath(t *testing.T) {
	items := map[string]string{"a": "1", "b/c": "2", "b/d/e": "3", "bb": "4"}
	for path, want := range map[string][]string{"": {"a", "b", "bb"}, "b": {"c", "d"}, "b/d": {"e"}, "a": nil, "c": nil, "b/": {"c", "d"}} {
		if diff := cmp.Diff(want, below(items, strings.Trim(path, "/"))); diff != "" {
			t.Errorf("%q (-want +got):\n%s", path, diff)
		}
	}
}

func TestStatesThatMachinesReport(t *testing.T) {
	for _, tt := range []struct {
		state store.UserState
		ok    bool
	}{
		{store.UserState{State: "running"}, true},
		{store.UserState{State: "succeeded", Code: 1000}, true},
		{store.UserState{State: "failed", Code: 1099}, true},
		{store.UserState{}, false},
		{store.UserState{State: "Running"}, false},
		{store.UserState{State: "running", Code: 999}, false},
		{store.UserState{State: "running", Code: 1100}, false},
	} {
		if got := userStateProblem(tt.state); (got == "") != tt.ok {
			t.Errorf("%+v: %q", tt.state, got)
		}
	}
	for message, want := range map[string]store.UserState{
		"running: step 1: two": {State: "running", Message: "step 1: two"}, "failed": {State: "failed"}, "": {},
	} {
		if got := *userStateOf(message); got != want {
			t.Errorf("%q is %+v, want %+v", message, got, want)
		}
	}
}

func TestStepOf(t *testing.T) {
	for kind, want := range map[string]int{
		"provisioning.101": 1, "provisioning.110": 10, "provisioning.100": 0, "provisioning.111": 0, "provisioning.failed": 0, "104": 0, "": 0, "provisioning.": 0, "provisioning.-1": 0,
	} {
		if got := stepOf(kind); got != want {
			t.Errorf("%q is step %d, want %d", kind, got, want)
		}
	}
	for n := range provisioningSteps {
		if stepOf(stepName(n+1)) != n+1 {
			t.Errorf("step %d is called %q", n+1, stepName(n+1))
		}
	}
}

func TestMachineOf(t *testing.T) {
	d := &store.Device{
		ID: "d", Hostname: "web", Plan: "local.small", OS: "ubuntu_24_04", Metro: "am", Facility: "am6", Tags: []string{"t"},
		Addresses: []store.Address{
			{IP: netip.MustParseAddr("192.0.2.1"), Public: true, Management: true}, {IP: netip.MustParseAddr("192.0.2.9"), Public: true},
		},
	}
	m := machineOf(loaded{device: d, userdata: []byte("#!"), keys: []string{"k"}})
	if m.CPUs != 2 || m.MemoryBytes != 2<<30 || len(m.Addresses) != 1 || string(m.Userdata) != "#!" || m.Instance.Distro != "ubuntu" || m.Instance.DistroVersion != "24.04" || m.Instance.Region != "am" {
		t.Errorf("machine %+v", m)
	}
	if diff := cmp.Diff([]netip.Addr{netip.MustParseAddr("192.0.2.9")}, elastic(d), cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); diff != "" {
		t.Errorf("elastic addresses (-want +got):\n%s", diff)
	}
	d.Plan, d.OS = "gone.since", "own_image"
	if m := machineOf(loaded{device: d}); m.CPUs != 0 || m.Instance.Distro != "own_image" {
		t.Errorf("deleted plan: got machine %+v, want no CPUs and the distribution own_image", m)
	}
}

func TestNeighbor(t *testing.T) {
	d := &store.Device{Addresses: []store.Address{
		{IP: netip.MustParseAddr("198.18.0.3"), Public: true, Management: true},
		{IP: netip.MustParseAddr("10.128.0.3"), Management: true},
		{IP: netip.MustParseAddr("2001:db8::3"), Public: true, Management: true},
		{IP: netip.MustParseAddr("198.18.0.9"), Prefix: netip.MustParsePrefix("198.18.0.9/32"), Public: true},
	}}
	four := neighbor(d, &store.BGPConfig{ASN: 65000, MD5: "Secret1234"}, 4)
	if four.CustomerIP != "10.128.0.3" || four.CustomerAS != 65000 || !four.MD5Enabled || *four.MD5Password != "Secret1234" || len(four.RoutesIn) != 1 || four.RoutesIn[0].Route != "198.18.0.9/32" {
		t.Errorf("neighbor %+v", four)
	}
	six := neighbor(d, &store.BGPConfig{}, 6)
	if six.CustomerIP != "2001:db8::3" || six.MD5Enabled || six.MD5Password != nil || len(six.RoutesIn) != 0 || len(six.PeerIPs) != 2 {
		t.Errorf("neighbor %+v", six)
	}
}

func TestFits(t *testing.T) {
	h := &store.Hardware{Plan: "c3", Metro: "am"}
	for _, tt := range []struct {
		plan, metro string
		want        bool
	}{
		{"c3", "am", true}, {"c3", "", true}, {"c3", "da", false}, {"m3", "am", false},
	} {
		if got := fits(h, &store.Device{Plan: tt.plan, Metro: tt.metro}); got != tt.want {
			t.Errorf("%s in %q: %t", tt.plan, tt.metro, got)
		}
	}
}

func TestLimitsPerProjectAndMinute(t *testing.T) {
	now := time.Unix(1000, 0)
	l := &limits{perWindow: 2, now: func() time.Time { return now }}
	admit := func(project string) (bool, http.Header) {
		w := httptest.NewRecorder()
		ok := l.admit(w, project)
		return ok, w.Header()
	}
	for i, want := range []bool{true, true, false} {
		if ok, h := admit("a"); ok != want || h.Get("X-RateLimit-Limit") != "2" || h.Get("X-RateLimit-Reset") != "1060" {
			t.Errorf("call %d: %t, headers %v", i+1, ok, h)
		}
	}
	if ok, h := admit("b"); !ok || h.Get("X-RateLimit-Remaining") != "1" {
		t.Errorf("another project: %t, headers %v", ok, h)
	}
	now = now.Add(rateWindow)
	if ok, h := admit("a"); !ok || h.Get("X-RateLimit-Remaining") != "1" {
		t.Errorf("after a minute: %t, headers %v", ok, h)
	}
}

func TestEndpoints(t *testing.T) {
	h := Home{Dir: t.TempDir()}
	if _, err := h.ReadEndpoint(); !errors.Is(err, ErrNoMetal) {
		t.Errorf("error %v without an endpoint", err)
	}
	if err := os.WriteFile(h.EndpointFile(), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := h.ReadEndpoint(); err == nil || !strings.Contains(err.Error(), h.EndpointFile()) || errors.Is(err, ErrNoMetal) {
		t.Errorf("error %v does not name the damaged file", err)
	}
	if err := h.CheckDriver("local"); err == nil {
		t.Error("a home with a damaged endpoint is used")
	}
	if err := h.WriteEndpoint(Endpoint{URL: "http://127.0.0.1:1", Driver: "memory"}); err != nil {
		t.Fatal(err)
	}
	e, err := h.ReadEndpoint()
	if err != nil || e.APIURL() != "http://127.0.0.1:1/metal/v1" || e.MachinesAPIURL() != "" {
		t.Errorf("endpoint %+v, error %v", e, err)
	}
	e.Machines = "http://198.18.0.1:1"
	if e.MachinesAPIURL() != "http://198.18.0.1:1/metal/v1" {
		t.Errorf("machines use %q", e.MachinesAPIURL())
	}
	var other *DriverError
	if err := h.CheckDriver("local"); !errors.As(err, &other) || other.Has != "memory" || other.Wanted != "local" {
		t.Errorf("error %v for another driver", err)
	}
	if err := h.CheckDriver("memory"); err != nil || h.LastDriver() != "memory" {
		t.Errorf("error %v for the same driver, last driver %q", err, h.LastDriver())
	}
}

func TestLastDriverOfAHomeWithoutEndpoint(t *testing.T) {
	h := Home{Dir: t.TempDir()}
	if got := h.LastDriver(); got != "" {
		t.Errorf("an empty home has driver %q", got)
	}
	if err := os.MkdirAll(h.LocalDir(), 0o700); err != nil {
		t.Fatal(err)
	}
	if got := h.LastDriver(); got != "local" {
		t.Errorf("last driver %q, want local", got)
	}
}

func TestTokens(t *testing.T) {
	h := Home{Dir: t.TempDir()}
	if _, err := h.AdminToken(); !os.IsNotExist(errors.Unwrap(err)) {
		t.Errorf("error %v without a token", err)
	}
	if err := h.prepare(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(h.TokenFile("p"), []byte(" abc\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := h.Token("p"); err != nil || got != "abc" {
		t.Errorf("token %q, error %v", got, err)
	}
	a, b := newToken(), newToken()
	hash := hashToken(a)
	if a == b || len(a) != 48 || hash == a || hash != hashToken(a) {
		t.Errorf("tokens %q and %q", a, b)
	}
}

func TestNewDevice(t *testing.T) {
	now := time.Unix(1000, 0)
	req := &api.DeviceCreate{OperatingSystem: "debian_12", Tags: []string{"a"}, SpotPriceMax: 1.5}
	d := newDevice(&store.Project{ID: "p"}, request.Order{Plan: "c3.small.x86", Metro: "am", Facility: "am6"}, req, now)
	if d.State != StateQueued || d.Power != string(driver.On) || d.Hostname != "c3-small-x86-"+d.ID[:8] || d.ProjectID != "p" || !d.Created.Equal(now) || d.SpotPriceMax != 1.5 {
		t.Errorf("device %+v", d)
	}
	req.Tags[0] = "changed"
	if d.Tags[0] != "a" {
		t.Error("the device shares its tags with the request")
	}
}

func TestApplyUpdate(t *testing.T) {
	name, locked, tags := "new", true, []string{}
	d := &store.Device{Hostname: "old", Description: "kept", Tags: []string{"a"}}
	applyUpdate(d, &api.DeviceUpdate{Hostname: &name, Locked: &locked, Tags: &tags})
	if d.Hostname != "new" || d.Description != "kept" || !d.Locked || len(d.Tags) != 0 || d.CustomData != nil {
		t.Errorf("device %+v", d)
	}
	applyUpdate(d, &api.DeviceUpdate{CustomData: []byte(`{"a":1}`)})
	if d.Hostname != "new" || string(d.CustomData) != `{"a":1}` {
		t.Errorf("device %+v", d)
	}
}

func TestOwnPathsAreNeverStruck(t *testing.T) {
	for path, want := range map[string]bool{"/drover/v1/devices": true, "/drover/": false, "/drover": false, "/devices": false, "/drovers/x": false, "": false} {
		if got := isOwn(path); got != want {
			t.Errorf("%q is Drover's own: %t", path, got)
		}
	}
}

func TestRenderedParts(t *testing.T) {
	if got := string(api.ObjectOf(nil)) + string(api.ObjectOf([]byte("null"))) + string(api.ObjectOf([]byte("[1]"))); got != "{}{}{}" {
		t.Errorf("custom data %s", got)
	}
	if got := nonNil[string](nil); got == nil || len(got) != 0 {
		t.Errorf("no tags are %#v", got)
	}
	if a, b := macOf("d", 0), macOf("d", 1); a == b || a != macOf("d", 0) || !strings.HasPrefix(a, "02:") || len(a) != 17 {
		t.Errorf("addresses %s and %s of two cards", a, b)
	}
	if metro("nowhere") != nil || facility("nowhere") != nil || linker("").plan("nothing") != nil {
		t.Error("what does not exist is described")
	}
	if f := facility("am6"); f.Metro.Code != "am" || f.Name != "Amsterdam am6" {
		t.Errorf("facility %+v", f)
	}
	if got := linker("/metal/v1").to("devices", "d"); got != "/metal/v1/devices/d" {
		t.Errorf("link %q", got)
	}
	if got := terminationText(nil) + terminationText(api.At(time.Unix(0, 0))); got != "1970-01-01T00:00:00Z" {
		t.Errorf("termination %q", got)
	}
}

func TestWithPath(t *testing.T) {
	r := httptest.NewRequest(http.MethodGet, "/metal/v1/devices?a=b", nil)
	for path, want := range map[string]string{"": "/", "/devices": "/devices"} {
		if got := withPath(r, path); got.URL.Path != want || got.URL.RawQuery != "a=b" || r.URL.Path != "/metal/v1/devices" {
			t.Errorf("%q: %s, the request %s", path, got.URL, r.URL)
		}
	}
}
