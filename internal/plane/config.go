package plane

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"syscall"

	"github.com/drover-dev/drover/config"
)

// Preferred ports of a new home, since users know them. Registries have several, so that concurrent
// planes get one below the kernel's range for outgoing connections.
var (
	preferredAPIPorts      = []int{6443}
	preferredRegistryPorts = []int{5000, 5001, 5002, 5003, 5004, 5005, 5006, 5007, 5008, 5009}
)

// Config holds settings that must not change once selected, because issued kubeconfigs and chart
// references depend on them, and internal ports.
type Config struct {
	APIAddress string   `json:"apiAddress"`
	APIPort    int      `json:"apiPort"`
	SANs       []string `json:"sans,omitempty"`
	// RegistryAddress is an additional listen address of the registry, if set.
	RegistryAddress string `json:"registryAddress,omitempty"`
	RegistryPort    int    `json:"registryPort"`
	// GitOps reports whether the plane runs the Flux controllers. It may change at any time.
	GitOps bool `json:"gitOps,omitempty"`
	// GitOpsOff means that they were turned off, so that a FluxConfig doesn't start them.
	GitOpsOff bool `json:"gitOpsOff,omitempty"`
	// Backups are the settings of scheduled backups; the defaults if nil.
	Backups *Backups `json:"backups,omitempty"`
	Ports   Ports    `json:"ports"`
}

// Ports are used between Drover's own processes on loopback, except for that of Git servers. They
// are kept as long as they are free.
type Ports struct {
	EtcdClient        int `json:"etcdClient"`
	EtcdPeer          int `json:"etcdPeer"`
	ControllerManager int `json:"controllerManager"`
	ManagerHealth     int `json:"managerHealth"`
	ManagerMetrics    int `json:"managerMetrics"`
	ManagerWebhook    int `json:"managerWebhook"`
	SourceArtifacts   int `json:"sourceArtifacts"`
	KustomizeHealth   int `json:"kustomizeHealth"`
	// GitWebhook is open to Git servers, at the address of the API server.
	GitWebhook int `json:"gitWebhook"`
}

// all lists the ports for checking and filling them.
func (p *Ports) all() []*int {
	return []*int{
		&p.EtcdClient, &p.EtcdPeer, &p.ControllerManager, &p.ManagerHealth, &p.ManagerMetrics, &p.ManagerWebhook,
		&p.SourceArtifacts, &p.KustomizeHealth, &p.GitWebhook,
	}
}

// APIURL returns the URL of the API server on this machine.
func (c Config) APIURL() string {
	host := c.APIAddress
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return "https://" + net.JoinHostPort(host, strconv.Itoa(c.APIPort))
}

// GitWebhookURL returns the URL at which Git servers announce pushes. If the plane listens on all
// addresses, it has the first additional name.
func (c Config) GitWebhookURL() string {
	if !c.GitOps {
		return ""
	}
	host := c.APIAddress
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = loopbackAddress
		if len(c.SANs) > 0 {
			host = c.SANs[0]
		}
	}
	return "https://" + net.JoinHostPort(host, strconv.Itoa(c.Ports.GitWebhook)) + "/git/" + config.FluxNamespace
}

// readConfig returns the zero Config for a home that has none yet.
func (h Home) readConfig() (Config, error) {
	var c Config
	data, err := os.ReadFile(h.configFile())
	if errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	if err != nil {
		return c, fmt.Errorf("reading configuration: %w", err)
	}
	if err := json.Unmarshal(data, &c); err != nil {
		return c, fmt.Errorf("parsing configuration %q: %w: delete the file to choose new ports", h.configFile(), err)
	}
	return c, nil
}

// PortTakenError means that another program uses a port that must not change.
type PortTakenError struct {
	Address string
	Port    int
	// Flag is the flag that selects another port.
	Flag string
	Err  error
}

func (e *PortTakenError) Error() string {
	return fmt.Sprintf("port %d on %s is already in use: stop the program that uses it, or choose another port with %s (%v)", e.Port, e.Address, e.Flag, e.Err)
}

func (e *PortTakenError) Unwrap() error { return e.Err }

// complete merges the user's options into the stored settings and selects the missing ones. It
// changes nothing outside c.
func (c Config) complete(o Options) (Config, error) {
	if o.APIAddress != "" {
		c.APIAddress = o.APIAddress
	}
	if c.APIAddress == "" {
		c.APIAddress = loopbackAddress
	}
	if net.ParseIP(c.APIAddress) == nil {
		return c, fmt.Errorf("--api-address %q is not an IP address", c.APIAddress)
	}
	if len(o.SANs) > 0 {
		c.SANs = o.SANs
	}
	c.GitOps = o.gitOps(c)
	if o.GitOps != nil {
		c.GitOpsOff = !*o.GitOps
	}
	if c.Backups = o.Backups.change(c.Backups); c.Backups != nil {
		if err := c.Backups.Check(); err != nil {
			return c, err
		}
	}
	if o.RegistryAddress != "" {
		c.RegistryAddress = o.RegistryAddress
	}
	if c.RegistryAddress != "" && net.ParseIP(c.RegistryAddress) == nil {
		return c, fmt.Errorf("--registry-address %q is not an IP address", c.RegistryAddress)
	}
	for _, choice := range []portChoice{
		{&c.APIPort, c.APIAddress, o.APIPort, "--api-port", preferredAPIPorts},
		{&c.RegistryPort, loopbackAddress, o.RegistryPort, "--registry-port", preferredRegistryPorts},
	} {
		if err := choice.make(); err != nil {
			return c, err
		}
	}
	if c.RegistryPort == c.APIPort {
		return c, fmt.Errorf("--api-port and --registry-port are both %d: choose different ports", c.APIPort)
	}
	err := c.choosePorts()
	return c, err
}

// portChoice selects a port that must not change later.
type portChoice struct {
	port      *int
	address   string
	asked     int
	flag      string
	preferred []int
}

func (p portChoice) make() error {
	if p.asked < 0 || p.asked > 65535 {
		return fmt.Errorf("%s %d is not a port number", p.flag, p.asked)
	}
	if p.asked != 0 {
		*p.port = p.asked
	}
	if *p.port == 0 {
		var err error
		*p.port, err = p.firstFree()
		return err
	}
	if err := portFree(p.address, *p.port); err != nil {
		return &PortTakenError{Address: p.address, Port: *p.port, Flag: p.flag, Err: err}
	}
	return nil
}

func (p portChoice) firstFree() (int, error) {
	for _, port := range p.preferred {
		if portFree(p.address, port) == nil {
			return port, nil
		}
	}
	return freePort(p.address)
}

// asked returns c with the ports that the user requested.
func (c Config) asked(o Options) Config {
	c.APIPort, c.RegistryPort = cmp.Or(o.APIPort, c.APIPort), cmp.Or(o.RegistryPort, c.RegistryPort)
	return c
}

// claimPorts prevents another plane from selecting the same free ports before they are in use.
func (p *Plane) claimPorts(before Config) error {
	if before.APIPort != p.config.APIPort {
		if err := p.claimPort(p.config.APIAddress, &p.config.APIPort); err != nil {
			return err
		}
	}
	if before.RegistryPort != p.config.RegistryPort {
		return p.claimPort(loopbackAddress, &p.config.RegistryPort)
	}
	return nil
}

// claimPort reserves a port by an abstract socket name, which only one process can hold.
func (p *Plane) claimPort(address string, port *int) error {
	claim, err := net.Listen("unix", fmt.Sprintf("@drover-port-%d", *port))
	if errors.Is(err, syscall.EADDRINUSE) {
		*port, err = freePort(address)
		return err
	}
	p.claims = append(p.claims, claim)
	return err
}

// choosePorts keeps the ports of the last start if they are still free, so that a restart doesn't
// invalidate stored references.
func (c *Config) choosePorts() error {
	seen := map[int]bool{c.APIPort: true, c.RegistryPort: true, 0: true}
	for _, p := range c.Ports.all() {
		address := loopbackAddress
		if p == &c.Ports.GitWebhook {
			address = c.APIAddress
		}
		for seen[*p] || portFree(address, *p) != nil {
			port, err := freePort(address)
			if err != nil {
				return err
			}
			*p = port
		}
		seen[*p] = true
	}
	return nil
}

func portFree(address string, port int) error {
	l, err := net.Listen("tcp", net.JoinHostPort(address, strconv.Itoa(port)))
	if err != nil {
		var errno syscall.Errno
		if errors.As(err, &errno) {
			return errno
		}
		return err
	}
	return l.Close()
}

// Free ports are chosen below those that the kernel gives to outgoing connections, one of which
// could take the port in the seconds until its component listens, and below node ports.
const (
	firstFreePort = 20000
	freePorts     = 10000
)

func freePort(address string) (int, error) {
	const attempts = 100
	for range attempts {
		//nolint:gosec // it only has to differ from the choice of other planes
		if port := firstFreePort + rand.IntN(freePorts); portFree(address, port) == nil {
			return port, nil
		}
	}
	l, err := net.Listen("tcp", net.JoinHostPort(address, "0"))
	if err != nil {
		return 0, fmt.Errorf("choosing a free port on %s: %w", address, err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}
