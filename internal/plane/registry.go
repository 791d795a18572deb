package plane

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/drover-dev/drover/charts"
	"github.com/drover-dev/drover/internal/base/atomicfile"
	"github.com/drover-dev/drover/internal/base/version"
	"github.com/drover-dev/drover/internal/registry"
)

// registry runs inside the supervisor: a separate process would need several times the memory.
func (p *Plane) registry() Component {
	return Component{
		Name:    "registry",
		Version: version.Get().Version,
		Run:     p.runRegistry,
		Probe:   func(ctx context.Context) error { return p.probes.get(ctx, p.config.RegistryURL()+"/v2/") },
	}
}

func (p *Plane) runRegistry(ctx context.Context, log io.Writer) error {
	server, err := registry.Open(ctx, registry.Options{
		Dir:      p.home.registryDir(),
		CertFile: p.home.certFile("registry"), KeyFile: p.home.keyFile("registry"),
		PasswordFile: p.home.registryPasswordFile(),
		Charts:       charts.Files,
		Log:          slog.New(slog.NewTextHandler(log, nil)),
	})
	if err != nil {
		return err
	}
	var listeners []net.Listener
	for _, address := range p.config.registryListens() {
		l, err := (&net.ListenConfig{Control: freeBind}).Listen(ctx, "tcp", address)
		if err != nil {
			closeAll(listeners)
			return fmt.Errorf("starting the registry: %w", err)
		}
		listeners = append(listeners, l)
	}
	return server.Serve(ctx, listeners...)
}

func closeAll(listeners []net.Listener) {
	for _, l := range listeners {
		_ = l.Close()
	}
}

// freeBind lets the registry listen on an address that does not exist yet: the bridge of local
// machines is created with the first machine.
func freeBind(_, _ string, socket syscall.RawConn) error {
	var set error
	err := socket.Control(func(fd uintptr) {
		set = unix.SetsockoptInt(int(fd), unix.SOL_IP, unix.IP_FREEBIND, 1)
	})
	return errors.Join(err, set)
}

// RegistryURL returns the URL of the registry on this machine.
func (c Config) RegistryURL() string { return loopbackURL(c.RegistryPort) }

// registryListens returns all addresses. An unspecified address includes loopback.
func (c Config) registryListens() []string {
	port := strconv.Itoa(c.RegistryPort)
	switch ip := net.ParseIP(c.RegistryAddress); {
	case ip == nil || ip.IsLoopback():
		return []string{loopback(c.RegistryPort)}
	case ip.IsUnspecified():
		return []string{net.JoinHostPort(c.RegistryAddress, port)}
	default:
		return []string{loopback(c.RegistryPort), net.JoinHostPort(c.RegistryAddress, port)}
	}
}

// ensureRegistryPassword creates the password for writing to the registry, once.
func (h Home) ensureRegistryPassword() error {
	_, err := os.Stat(h.registryPasswordFile())
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return atomicfile.Write(h.registryPasswordFile(), []byte(rand.Text()+"\n"), 0o600)
}

// Registry describes the registry of a home to its owner.
type Registry struct {
	URL string `json:"url"`
	// Address is the additional listen address, host:port.
	Address      string `json:"address,omitempty"`
	CAFile       string `json:"caFile"`
	PasswordFile string `json:"passwordFile"`
	Dir          string `json:"dir"`
	// State is the state of the component.
	State string `json:"state"`
}

// ReadRegistry describes the registry of a home, even if the plane is stopped.
func ReadRegistry(h Home) (Registry, error) {
	state, err := ReadState(h)
	if err != nil {
		return Registry{}, err
	}
	config, err := h.readConfig()
	if err != nil {
		return Registry{}, err
	}
	r := Registry{
		URL: config.RegistryURL(), CAFile: h.certFile("ca"), PasswordFile: h.registryPasswordFile(),
		Dir: h.registryDir(), State: state.component("registry").State,
	}
	if config.RegistryAddress != "" {
		r.Address = net.JoinHostPort(config.RegistryAddress, strconv.Itoa(config.RegistryPort))
	}
	if r.State == "" { // The home was last used by a Drover without a registry.
		r.State = Stopped
	}
	return r, nil
}
