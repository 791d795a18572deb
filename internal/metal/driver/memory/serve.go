package memory

import (
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/version"
)

// etcdPrefix is the prefix of etcd pods, by which clients address a member.
const etcdPrefix = "etcd-"

// serveOn serves the API on exactly the current addresses of a machine. An address that it no
// longer has passes to another machine that has it assigned: during a move, both may have it for a
// moment, in either order.
func (c *clusters) serveOn(n *node) error {
	want := c.addresses(n)
	var errs []error
	for at, f := range c.fronts {
		if f.machine == n.machine.ID && !slices.Contains(want, at) {
			delete(c.fronts, at)
			errs = append(errs, f.listener.Close(), c.inherit(at))
		}
	}
	for _, at := range want {
		errs = append(errs, c.open(at, n))
	}
	return errors.Join(errs...)
}

// addresses returns the addresses on which a machine serves the API: none if it is off or runs no
// API server.
func (c *clusters) addresses(n *node) []netip.AddrPort {
	if !n.on || !n.boot.controlPlane || c.shutdown {
		return nil
	}
	var out []netip.AddrPort
	for _, a := range n.machine.Addresses {
		if a.Public && a.IP.IsLoopback() {
			out = append(out, netip.AddrPortFrom(a.IP, n.boot.port))
		}
	}
	for _, a := range n.elastic() {
		out = append(out, netip.AddrPortFrom(a, n.boot.port))
	}
	if at := netip.AddrPortFrom(n.boot.endpoint, n.boot.port); c.announces(n, at) {
		out = append(out, at)
	}
	return out
}

// announces reports whether kube-vip on a machine announces the endpoint of its cluster: it may,
// and no other machine has the address, since the first one that announces it leads.
func (c *clusters) announces(n *node, at netip.AddrPort) bool {
	if !n.boot.kubeVIP || !at.IsValid() || !c.mayAnnounce(n.machine.ID, at.Addr()) {
		return false
	}
	f, taken := c.fronts[at]
	return !taken || f.machine == n.machine.ID
}

// inherit passes a released address to another machine that has it assigned.
func (c *clusters) inherit(at netip.AddrPort) error {
	for _, n := range c.nodes {
		if slices.Contains(c.addresses(n), at) {
			return c.open(at, n)
		}
	}
	return nil
}

// open starts serving at an address. It takes over an address that moved here from another machine.
func (c *clusters) open(at netip.AddrPort, n *node) error {
	if f, found := c.fronts[at]; found {
		if f.machine == n.machine.ID {
			return nil
		}
		delete(c.fronts, at)
		_ = f.listener.Close()
	}
	l, err := listen(at)
	if err != nil {
		return err
	}
	c.fronts[at] = &front{cluster: n.cluster, machine: n.machine.ID, names: n.boot.names, listener: l}
	c.serving.Go(func() { _ = c.server.ServeTLS(l, "", "") })
	return nil
}

// tlsConfig selects the certificate: that of an etcd member if the client requests its name,
// otherwise that of the API server.
func (c *clusters) tlsConfig(hello *tls.ClientHelloInfo) (*tls.Config, error) {
	at, err := netip.ParseAddrPort(hello.Conn.LocalAddr().String())
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	f, found := c.fronts[at]
	if !found {
		return nil, fmt.Errorf("no cluster is served at %s", at)
	}
	if strings.HasPrefix(hello.ServerName, etcdPrefix) && f.cluster.etcd != nil {
		return f.cluster.config(hello.ServerName, f.cluster.etcd, identity{common: strings.TrimPrefix(hello.ServerName, etcdPrefix), names: []string{hello.ServerName, "localhost"}})
	}
	return f.cluster.config(at.Addr().String(), f.cluster.ca, identity{
		common: "kube-apiserver", // kubeadm's name, which clients expect
		names:  append([]string{at.Addr().String(), "localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"}, f.names...),
	})
}

// config returns the TLS configuration of a server, which is created once.
func (k *cluster) config(server string, a *authority, id identity) (*tls.Config, error) {
	if cfg, found := k.configs[server]; found {
		return cfg, nil
	}
	cfg, err := a.serving(id)
	if err == nil {
		k.configs[server] = cfg
	}
	return cfg, err
}

// ServeHTTP serves the API servers and the etcd members of all clusters. Only clients with a
// certificate of the cluster can access more than its health.
func (c *clusters) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	known := r.TLS != nil && len(r.TLS.PeerCertificates) > 0
	switch {
	case known && r.ProtoMajor == 2 && strings.HasPrefix(r.Header.Get("Content-Type"), "application/grpc"):
		c.elect(r)
		c.etcd.ServeHTTP(w, r)
	case r.URL.Path == "/healthz" || r.URL.Path == "/readyz" || r.URL.Path == "/livez":
		_, _ = w.Write([]byte("ok"))
	case r.URL.Path == "/version":
		c.serveVersion(w, r)
	case !known:
		writeStatus(w, http.StatusUnauthorized, metav1.StatusReasonUnauthorized)
	default:
		c.serveAPI(w, r)
	}
}

func (c *clusters) serveVersion(w http.ResponseWriter, r *http.Request) {
	at, err := netip.ParseAddrPort(localAddress(r))
	c.mu.Lock()
	f, found := c.fronts[at]
	c.mu.Unlock()
	if err != nil || !found {
		writeStatus(w, http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	parts := strings.SplitN(strings.TrimPrefix(f.cluster.version, "v"), ".", 3)
	info := version.Info{GitVersion: f.cluster.version, Platform: "memory"}
	if len(parts) > 1 {
		info.Major, info.Minor = parts[0], parts[1]
	}
	_ = json.NewEncoder(w).Encode(info)
}

func writeStatus(w http.ResponseWriter, code int, reason metav1.StatusReason) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Code: int32(code), Reason: reason, Message: string(reason),
	})
}
