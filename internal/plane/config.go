package plane

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strconv"
	"syscall"
)

// preferredAPIPort is tried first for a new home, since people know it.
const preferredAPIPort = 6443

// Config is what is chosen once and must stay, because kubeconfigs that have
// been handed out depend on it, and the ports that only we use.
type Config struct {
	APIAddress string   `json:"apiAddress"`
	APIPort    int      `json:"apiPort"`
	SANs       []string `json:"sans,omitempty"`
	Ports      Ports    `json:"ports"`
}

// Ports are used between our own processes on loopback. They may change at
// any start.
type Ports struct {
	EtcdClient        int `json:"etcdClient"`
	EtcdPeer          int `json:"etcdPeer"`
	ControllerManager int `json:"controllerManager"`
	ManagerHealth     int `json:"managerHealth"`
	ManagerMetrics    int `json:"managerMetrics"`
	ManagerWebhook    int `json:"managerWebhook"`
}

// all lists the ports so that they can be checked and filled in one way.
func (p *Ports) all() []*int {
	return []*int{&p.EtcdClient, &p.EtcdPeer, &p.ControllerManager, &p.ManagerHealth, &p.ManagerMetrics, &p.ManagerWebhook}
}

// APIURL is where clients on this machine reach the API server.
func (c Config) APIURL() string {
	host := c.APIAddress
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return "https://" + net.JoinHostPort(host, strconv.Itoa(c.APIPort))
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
		return c, fmt.Errorf("configuration %q is damaged (%w): remove it to have new ports chosen", h.configFile(), err)
	}
	return c, nil
}

// PortTakenError means that the API server's port is used by somebody else.
type PortTakenError struct {
	Address string
	Port    int
	Err     error
}

func (e *PortTakenError) Error() string {
	return fmt.Sprintf("port %d on %s is already in use: stop the program that uses it, or choose another with --api-port (%v)", e.Port, e.Address, e.Err)
}

func (e *PortTakenError) Unwrap() error { return e.Err }

// complete merges what the user asks for into what was chosen before, and
// chooses the rest. It changes nothing outside c.
func (c Config) complete(o Options) (Config, error) {
	if o.APIAddress != "" {
		c.APIAddress = o.APIAddress
	}
	if c.APIAddress == "" {
		c.APIAddress = "127.0.0.1"
	}
	if net.ParseIP(c.APIAddress) == nil {
		return c, fmt.Errorf("--api-address %q is not an IP address", c.APIAddress)
	}
	if len(o.SANs) > 0 {
		c.SANs = o.SANs
	}
	if err := c.chooseAPIPort(o.APIPort); err != nil {
		return c, err
	}
	err := c.choosePorts()
	return c, err
}

func (c *Config) chooseAPIPort(asked int) error {
	if asked < 0 || asked > 65535 {
		return fmt.Errorf("--api-port %d is not a port number", asked)
	}
	if asked != 0 {
		c.APIPort = asked
	}
	if c.APIPort == 0 {
		c.APIPort = preferredAPIPort
		if portFree(c.APIAddress, c.APIPort) == nil {
			return nil
		}
		port, err := freePort(c.APIAddress)
		c.APIPort = port
		return err
	}
	if err := portFree(c.APIAddress, c.APIPort); err != nil {
		return &PortTakenError{Address: c.APIAddress, Port: c.APIPort, Err: err}
	}
	return nil
}

// claimAPIPort keeps a port that was chosen because it was free from being
// chosen by another plane too, in the seconds until the API server takes it. A
// name that only one process can have stands for the port.
func (p *Plane) claimAPIPort() error {
	var err error
	p.claim, err = net.Listen("unix", fmt.Sprintf("@drover-api-port-%d", p.config.APIPort))
	if errors.Is(err, syscall.EADDRINUSE) {
		p.config.APIPort, err = freePort(p.config.APIAddress)
	}
	return err
}

// choosePorts keeps the ports of the last start where they are still free, so
// that a restart changes nothing that is written down elsewhere.
func (c *Config) choosePorts() error {
	seen := map[int]bool{c.APIPort: true, 0: true}
	for _, p := range c.Ports.all() {
		for seen[*p] || portFree("127.0.0.1", *p) != nil {
			port, err := freePort("127.0.0.1")
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

func freePort(address string) (int, error) {
	l, err := net.Listen("tcp", net.JoinHostPort(address, "0"))
	if err != nil {
		return 0, fmt.Errorf("choosing a free port on %s: %w", address, err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}
