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

func TestCompleteChoosesDistinctPorts(t *testing.T) {
	c, err := Config{}.complete(Options{})
	if err != nil {
		t.Fatal(err)
	}
	seen := map[int]bool{c.APIPort: true}
	for _, p := range c.Ports.all() {
		if *p == 0 || seen[*p] {
			t.Errorf("port %d is missing or used twice in %+v", *p, c)
		}
		seen[*p] = true
	}
	if c.APIAddress != "127.0.0.1" {
		t.Errorf("the API listens on %q, want loopback", c.APIAddress)
	}
}

func TestCompleteKeepsWhatWasChosen(t *testing.T) {
	first, err := Config{}.complete(Options{})
	if err != nil {
		t.Fatal(err)
	}
	second, err := first.complete(Options{})
	if err != nil {
		t.Fatal(err)
	}
	if second.APIPort != first.APIPort || second.Ports != first.Ports {
		t.Errorf("a second start chose %+v after %+v", second, first)
	}
}

func TestCompleteMovesInternalPortsThatAreTaken(t *testing.T) {
	taken := listen(t)
	c, err := Config{Ports: Ports{EtcdClient: taken}}.complete(Options{})
	if err != nil {
		t.Fatal(err)
	}
	if c.Ports.EtcdClient == taken {
		t.Error("etcd keeps a port that another program uses")
	}
}

func TestCompleteRefusesATakenAPIPort(t *testing.T) {
	taken := listen(t)
	for name, run := range map[string]func() (Config, error){
		"asked for":     func() (Config, error) { return Config{}.complete(Options{APIPort: taken}) },
		"chosen before": func() (Config, error) { return Config{APIPort: taken}.complete(Options{}) },
	} {
		var e *PortTakenError
		if _, err := run(); !errors.As(err, &e) || !strings.Contains(err.Error(), "--api-port") {
			t.Errorf("%s: error = %v, want a PortTakenError that says what to do", name, err)
		}
	}
}

func TestCompleteRefusesNonsense(t *testing.T) {
	for name, o := range map[string]Options{
		"a port above 65535":  {APIPort: 65536},
		"a negative port":     {APIPort: -1},
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

func TestTwoPlanesDoNotChooseTheSamePort(t *testing.T) {
	port, err := freePort("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	first := &Plane{config: Config{APIAddress: "127.0.0.1", APIPort: port}}
	second := &Plane{config: first.config}
	for _, p := range []*Plane{first, second} {
		if err := p.claimAPIPort(); err != nil {
			t.Fatal(err)
		}
	}
	defer first.claim.Close()
	if first.config.APIPort != port || second.config.APIPort == port || second.config.APIPort == 0 {
		t.Errorf("ports %d and %d, want %d and another", first.config.APIPort, second.config.APIPort, port)
	}
}
