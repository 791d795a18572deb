package memory

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"

	"github.com/drover-dev/drover/internal/base/safeyaml"
	"github.com/drover-dev/drover/internal/metal/driver"
	"github.com/drover-dev/drover/internal/metal/userdata"
)

// etcdPort is the port of etcd for clients.
const etcdPort = 2379

// etcdFiles is the directory of the certificates of a member, and etcdConfig kubeadm's
// configuration of it.
const (
	etcdFiles  = "/etc/kubernetes/pki/etcd/"
	etcdConfig = "/etc/kubernetes/etcd/kubeadm.yaml"
)

// externals are the simulated external etcds: their members, but no data.
type externals struct {
	log *slog.Logger

	mu       sync.Mutex
	etcds    map[string]*external
	machines map[string]*etcdMachine
	fronts   map[netip.AddrPort]*etcdFront
	serving  sync.WaitGroup
	shutdown bool
}

// external is one etcd.
type external struct {
	next    uint64
	members []*pb.Member
	leader  uint64
}

// etcdMachine is a machine that runs a member.
type etcdMachine struct {
	machine driver.Machine
	etcd    *external
	name    string
	config  *tls.Config
	elastic func() []netip.Addr
	on      bool
}

// etcdFront is an address at which a member serves clients.
type etcdFront struct {
	machine  string
	listener *listener
	server   *grpc.Server
}

func newExternals(log *slog.Logger) *externals {
	return &externals{log: log, etcds: map[string]*external{}, machines: map[string]*etcdMachine{}, fronts: map[netip.AddrPort]*etcdFront{}}
}

// memberBoot is what the userdata of a member says.
type memberBoot struct {
	name    string
	initial map[string]string // peer URLs by name
	files   map[string]string
}

// parseMember returns nil for the userdata of other machines.
func parseMember(m driver.Machine) (*memberBoot, error) {
	plan, err := userdata.Parse(m.Userdata, m.Variables())
	if err != nil {
		return nil, err
	}
	b := &memberBoot{files: map[string]string{}, initial: map[string]string{}}
	for _, f := range plan.Files {
		b.files[f.Path] = string(f.Content)
	}
	config, ok := b.files[etcdConfig]
	if !ok {
		return nil, nil
	}
	err = b.read(config)
	return b, err
}

func (b *memberBoot) read(config string) error {
	for text := range strings.SplitSeq("\n"+config, "\n---") {
		var doc struct {
			Etcd struct {
				Local struct {
					ExtraArgs []struct{ Name, Value string } `json:"extraArgs"`
				} `json:"local"`
			} `json:"etcd"`
		}
		if err := safeyaml.Unmarshal([]byte(text), &doc); err != nil {
			return fmt.Errorf("file %q: %w", etcdConfig, err)
		}
		for _, a := range doc.Etcd.Local.ExtraArgs {
			b.set(a.Name, a.Value)
		}
	}
	if b.name == "" || b.initial[b.name] == "" {
		return fmt.Errorf("file %q: initial-cluster lacks member %q", etcdConfig, b.name)
	}
	return nil
}

func (b *memberBoot) set(flag, value string) {
	switch flag {
	case "name":
		b.name = value
	case "initial-cluster":
		for pair := range strings.SplitSeq(value, ",") {
			name, peer, _ := strings.Cut(pair, "=")
			b.initial[name] = peer
		}
	}
}

// boot starts the member of a machine. The first machine of an etcd forms it.
func (e *externals) boot(b *memberBoot, m driver.Machine, elastic func() []netip.Addr) error {
	config, err := b.tls()
	if err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	x := e.find(b)
	i := slices.IndexFunc(x.members, func(member *pb.Member) bool {
		return member.Name == b.name || member.Name == "" && slices.Contains(member.PeerURLs, b.initial[b.name])
	})
	if i < 0 {
		return fmt.Errorf("starting etcd: member %q was removed, or never added", b.name)
	}
	x.members[i].Name = b.name
	x.members[i].ClientURLs = []string{strings.Replace(b.initial[b.name], ":2380", ":2379", 1)}
	e.machines[m.ID] = &etcdMachine{machine: m, etcd: x, name: b.name, config: config, elastic: elastic, on: true}
	return e.serveOn(m.ID)
}

// find returns the etcd of a CA.
func (e *externals) find(b *memberBoot) *external {
	sum := sha256.Sum256([]byte(b.files[etcdFiles+"ca.crt"]))
	id := hex.EncodeToString(sum[:])
	if x := e.etcds[id]; x != nil {
		return x
	}
	x := &external{}
	for name, peer := range b.initial {
		x.add(peer).Name = name
	}
	for _, m := range x.members {
		if m.Name != b.name {
			m.Name = "" // it has not started
		}
	}
	e.etcds[id] = x
	return x
}

func (x *external) add(peer string) *pb.Member {
	x.next++
	m := &pb.Member{ID: x.next, PeerURLs: []string{peer}}
	x.members = append(x.members, m)
	return m
}

func (b *memberBoot) tls() (*tls.Config, error) {
	cert, err := tls.X509KeyPair([]byte(b.files[etcdFiles+"server.crt"]), []byte(b.files[etcdFiles+"server.key"]))
	if err != nil {
		return nil, fmt.Errorf("reading the certificate of etcd: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM([]byte(b.files[etcdFiles+"ca.crt"])) {
		return nil, errors.New("reading the CA of etcd: no certificate")
	}
	return &tls.Config{
		Certificates: []tls.Certificate{cert}, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert,
		MinVersion: tls.VersionTLS12, NextProtos: []string{"h2"},
	}, nil
}

// serveOn serves a member on exactly the current addresses of its machine.
func (e *externals) serveOn(id string) error {
	m, found := e.machines[id]
	if !found {
		return nil
	}
	want := e.addresses(m)
	var errs []error
	for at, f := range e.fronts {
		if f.machine == id && !slices.Contains(want, at) {
			e.close(at)
			errs = append(errs, e.inherit(at))
		}
	}
	for _, at := range want {
		errs = append(errs, e.open(at, m))
	}
	return errors.Join(errs...)
}

func (e *externals) addresses(m *etcdMachine) []netip.AddrPort {
	if !m.on || e.shutdown {
		return nil
	}
	var out []netip.AddrPort
	for _, a := range m.elastic() {
		out = append(out, netip.AddrPortFrom(a, etcdPort))
	}
	return out
}

// inherit passes a released address to another machine that has it assigned.
func (e *externals) inherit(at netip.AddrPort) error {
	for _, m := range e.machines {
		if slices.Contains(e.addresses(m), at) {
			return e.open(at, m)
		}
	}
	return nil
}

func (e *externals) open(at netip.AddrPort, m *etcdMachine) error {
	if f, found := e.fronts[at]; found {
		if f.machine == m.machine.ID {
			return nil
		}
		e.close(at)
	}
	l, err := listen(at)
	if err != nil {
		return err
	}
	server := grpc.NewServer()
	s := &memberServer{externals: e, machine: m}
	pb.RegisterClusterServer(server, s)
	pb.RegisterMaintenanceServer(server, s)
	e.fronts[at] = &etcdFront{machine: m.machine.ID, listener: l, server: server}
	e.serving.Go(func() { _ = server.Serve(tls.NewListener(l, m.config)) })
	return nil
}

func (e *externals) close(at netip.AddrPort) {
	f := e.fronts[at]
	delete(e.fronts, at)
	_ = f.listener.Close()
	go f.server.Stop() // it may serve the request that has led here
}

func (e *externals) readdress(id string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.serveOn(id)
}

func (e *externals) powerOff(id string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	m, found := e.machines[id]
	if !found {
		return
	}
	m.on = false
	if err := e.serveOn(id); err != nil {
		e.log.Warn("powering off a simulated etcd member failed", "machine", id, "error", err)
	}
}

func (e *externals) remove(id string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	m, found := e.machines[id]
	if !found {
		return nil
	}
	m.on = false
	err := e.serveOn(id)
	delete(e.machines, id)
	for key, x := range e.etcds {
		if !slices.ContainsFunc(e.of(x), func(*etcdMachine) bool { return true }) {
			delete(e.etcds, key)
		}
	}
	return err
}

// of returns the machines of an etcd.
func (e *externals) of(x *external) []*etcdMachine {
	var out []*etcdMachine
	for _, m := range e.machines {
		if m.etcd == x {
			out = append(out, m)
		}
	}
	return out
}

func (e *externals) stop() {
	e.mu.Lock()
	e.shutdown = true
	for at := range e.fronts {
		e.close(at)
	}
	e.mu.Unlock()
	e.serving.Wait()
}

// reachable reports whether other members reach a member: its machine has the address.
func (e *externals) reachable(x *external, m *pb.Member) bool {
	u, err := url.Parse(m.PeerURLs[0])
	if err != nil {
		return false
	}
	addr, err := netip.ParseAddr(u.Hostname())
	if err != nil {
		return false
	}
	f, found := e.fronts[netip.AddrPortFrom(addr, etcdPort)]
	return found && e.machines[f.machine] != nil && e.machines[f.machine].etcd == x && e.machines[f.machine].name == m.Name
}
