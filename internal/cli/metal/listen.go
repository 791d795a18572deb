package metal

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"

	"github.com/drover-dev/drover/internal/cli/ui"
	"github.com/drover-dev/drover/internal/metal"
)

// place is where the API is served.
type place struct {
	addr string
	tls  bool
}

// place returns the requested place, or that of the last time, or any port of loopback. Only
// loopback may do without TLS.
func (o *serveOptions) place(home metal.Home) (place, error) {
	p := place{addr: o.addr, tls: o.tls}
	if before := lastPlace(home); p.addr == "" {
		p = place{addr: before.addr, tls: p.tls || before.tls}
	}
	p.addr = cmp.Or(p.addr, "127.0.0.1:0")
	if !p.tls && !isLoopback(p.addr) {
		return p, ui.Usagef("serving at %q without TLS would send tokens in clear text: add --tls, or choose a loopback address with --addr 127.0.0.1:0", p.addr)
	}
	return p, nil
}

func isLoopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

func lastPlace(home metal.Home) place {
	e, err := home.ReadEndpoint()
	if err != nil {
		return place{}
	}
	u, err := url.Parse(e.URL)
	if err != nil {
		return place{}
	}
	return place{addr: u.Host, tls: u.Scheme == "https"}
}

// listen opens the API's address and, with TLS, the same port of the host's address on the network
// of machines, if there is one. It completes the endpoint.
func (o *serveOptions) listen(ctx context.Context, home metal.Home, host netip.Addr, e *metal.Endpoint) ([]net.Listener, error) {
	p, err := o.place(home)
	if err != nil {
		return nil, err
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", p.addr)
	if err != nil {
		return nil, fmt.Errorf("listening for requests: %w: choose another address with --addr", err)
	}
	if !p.tls && !host.IsValid() {
		e.URL = "http://" + l.Addr().String()
		return []net.Listener{l}, nil
	}
	config, err := home.ServerTLS(certificateHosts(p.addr, l.Addr(), host))
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	e.URL, e.CA = "http://"+l.Addr().String(), home.CAFile()
	all := []net.Listener{l}
	if p.tls {
		e.URL, all[0] = "https://"+l.Addr().String(), tls.NewListener(l, config)
	}
	return withMachines(ctx, all, host, config, e)
}

// withMachines adds a listener for machines, unless the first one has every address of the host.
func withMachines(ctx context.Context, all []net.Listener, host netip.Addr, config *tls.Config, e *metal.Endpoint) ([]net.Listener, error) {
	at, err := netip.ParseAddrPort(all[0].Addr().String())
	if err != nil || !host.IsValid() {
		return all, err
	}
	forMachines := netip.AddrPortFrom(host, at.Port()).String()
	e.Machines = "https://" + forMachines
	if at.Addr().IsUnspecified() {
		return all, nil
	}
	beside, err := (&net.ListenConfig{}).Listen(ctx, "tcp", forMachines)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("listening for machines: %w: choose another port with --addr", err), closeAll(all))
	}
	return append(all, tls.NewListener(beside, config)), nil
}

// certificateHosts returns the names and addresses by which clients may know the service.
func certificateHosts(asked string, at net.Addr, host netip.Addr) []string {
	hosts := []string{"localhost", "127.0.0.1", "::1"}
	if name, _, err := net.SplitHostPort(asked); err == nil && name != "" {
		hosts = append(hosts, name)
	}
	if host.IsValid() {
		hosts = append(hosts, host.String())
	}
	tcp, ok := at.(*net.TCPAddr)
	if !ok {
		return hosts
	}
	hosts = append(hosts, tcp.IP.String())
	if !tcp.IP.IsUnspecified() {
		return hosts
	}
	addresses, _ := net.InterfaceAddrs()
	for _, a := range addresses {
		if prefix, err := netip.ParsePrefix(a.String()); err == nil {
			hosts = append(hosts, prefix.Addr().String())
		}
	}
	return hosts
}

func closeAll(listeners []net.Listener) error {
	var errs []error
	for _, l := range listeners {
		errs = append(errs, l.Close())
	}
	return errors.Join(errs...)
}
