package plane

import (
	"errors"
	"net"
	"strings"
	"testing"
)

func listen(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l.Addr().(*net.TCPAddr).Port
}

func TestCompleteSelectsDistinctPorts(t *testing.T) {
	c, err := Config{}.complete(Options{})
	if err != nil {
		t.Fatal(err)
	}
	seen := map[int]bool{c.APIPort: true, c.RegistryPort: true, 0: true}
	if len(seen) != 3 {
		t.Errorf("API and registry have ports %d and %d", c.APIPort, c.RegistryPort)
	}
	for _, p := range c.Ports.all() {
		if seen[*p] {
			t.Errorf("port %d is missing or used twice in %+v", *p, c)
		}
		seen[*p] = true
	}
	if c.APIAddress != "127.0.0.1" {
		t.Errorf("the API listens on %q, want loopback", c.APIAddress)
	}
}

func TestCompleteKeepsRecordedPorts(t *testing.T) {
	first, err := Config{}.complete(Options{})
	if err != nil {
		t.Fatal(err)
	}
	second, err := first.complete(Options{})
	if err != nil {
		t.Fatal(err)
	}
	if second.APIPort != first.APIPort || second.RegistryPort != first.RegistryPort || second.Ports != first.Ports {
		t.Errorf("a second start chose %+v after %+v", second, first)
	}
}

func TestCompleteReplacesUsedInternalPorts(t *testing.T) {
	taken := listen(t)
	c, err := Config{Ports: Ports{EtcdClient: taken}}.complete(Options{})
	if err != nil {
		t.Fatal(err)
	}
	if c.Ports.EtcdClient == taken {
		t.Error("etcd keeps a port that another program uses")
	}
}

func TestCompleteRejectsUsedFixedPorts(t *testing.T) {
	taken := listen(t)
	for name, tt := range map[string]struct {
		before Config
		asked  Options
		flag   string
	}{
		"the API's, asked for":          {Config{}, Options{APIPort: taken}, "--api-port"},
		"the API's, chosen before":      {Config{APIPort: taken}, Options{}, "--api-port"},
		"the registry's, asked for":     {Config{}, Options{RegistryPort: taken}, "--registry-port"},
		"the registry's, chosen before": {Config{RegistryPort: taken}, Options{}, "--registry-port"},
	} {
		var e *PortTakenError
		if _, err := tt.before.complete(tt.asked); !errors.As(err, &e) || !strings.Contains(err.Error(), tt.flag) {
			t.Errorf("%s: error = %v, want a PortTakenError that says what to do", name, err)
		}
	}
}

func TestCompleteRejectsInvalidConfig(t *testing.T) {
	for name, o := range map[string]Options{
		"a port above 65535":  {APIPort: 65536},
		"a negative port":     {APIPort: -1},
		"no registry there":   {RegistryAddress: "example.com"},
		"no port for it":      {RegistryPort: 70000},
		"one port for two":    {RegistryPort: 6500, APIPort: 6500},
		"a name, not address": {APIAddress: "example.com"},
	} {
		if _, err := (Config{}).complete(o); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}

func TestAPIURLIsReachableFromThisMachine(t *testing.T) {
	for address, want := range map[string]string{
		"127.0.0.1": "https://127.0.0.1:6443", "0.0.0.0": "https://127.0.0.1:6443", "::": "https://127.0.0.1:6443", "10.1.2.3": "https://10.1.2.3:6443", "::1": "https://[::1]:6443",
	} {
		if got := (Config{APIAddress: address, APIPort: 6443}).APIURL(); got != want {
			t.Errorf("URL for %s = %s, want %s", address, got, want)
		}
	}
}

func TestPlanesSelectDistinctPorts(t *testing.T) {
	chosen, err := Config{}.complete(Options{})
	if err != nil {
		t.Fatal(err)
	}
	var planes []*Plane
	for range 2 {
		p := &Plane{config: chosen}
		if err := p.claimPorts(Config{}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { closeAll(p.claims) })
		planes = append(planes, p)
	}
	first, second := planes[0].config, planes[1].config
	if first.APIPort != chosen.APIPort || second.APIPort == chosen.APIPort || second.APIPort == 0 {
		t.Errorf("API ports %d and %d, want %d and another", first.APIPort, second.APIPort, chosen.APIPort)
	}
	if first.RegistryPort != chosen.RegistryPort || second.RegistryPort == chosen.RegistryPort || second.RegistryPort == 0 {
		t.Errorf("registry ports %d and %d, want %d and another", first.RegistryPort, second.RegistryPort, chosen.RegistryPort)
	}
}

func TestRequestedPortsAreKept(t *testing.T) {
	o := Options{APIPort: 6001, RegistryPort: 6002}
	p := &Plane{config: Config{APIPort: 6001, RegistryPort: 6002}}
	if err := p.claimPorts(Config{}.asked(o)); err != nil || len(p.claims) != 0 {
		t.Errorf("%d claims (%v)", len(p.claims), err)
	}
}
