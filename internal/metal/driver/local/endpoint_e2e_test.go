package local

import (
	"fmt"
	"net/netip"
	"os/exec"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/drover-dev/drover/internal/metal/driver"
	"github.com/drover-dev/drover/internal/metal/driver/local/guest"
)

const certificateKey = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

// controlPlaneUserdata initializes a control plane, or joins it.
func controlPlaneUserdata(endpoint netip.Addr, first bool) []byte {
	const header = "#cloud-config\nruncmd:\n- "
	if first {
		return fmt.Appendf(nil, header+"kubeadm init --control-plane-endpoint %s:6443 --token %s --upload-certs --certificate-key %s"+
			" --skip-phases addon/coredns\n", endpoint, token, certificateKey)
	}
	return fmt.Appendf(nil, header+"kubeadm join %s:6443 --token %s --discovery-token-unsafe-skip-ca-verification"+
		" --control-plane --certificate-key %s\n", endpoint, token, certificateKey)
}

// plane is a control plane of machines that share an endpoint.
type plane struct {
	*fixture

	endpoint netip.Addr
	machines []driver.Machine
}

func newPlane(t *testing.T, size int) *plane {
	t.Helper()
	f := newFixture(t)
	p := &plane{fixture: f, endpoint: f.address200()}
	for i := range size {
		m := f.device(fmt.Sprintf("cp-%d", i+1), "")
		m.Endpoint, m.Userdata = p.endpoint, controlPlaneUserdata(p.endpoint, i == 0)
		p.machines = append(p.machines, m)
		f.boot(m)
	}
	return p
}

// address200 is an address of the network that no machine has.
func (f *fixture) address200() netip.Addr {
	a := gateway(f.network.Public).As4()
	a[3] = 200
	return netip.AddrFrom4(a)
}

// holders returns the machines that answer for the endpoint.
func (p *plane) holders() (ids []string) {
	for _, m := range p.machines {
		if p.has(m.ID) {
			ids = append(ids, m.ID)
		}
	}
	return ids
}

func (p *plane) has(id string) (has bool) {
	process, running := p.mustMachine(id).process()
	if !running {
		return false
	}
	err := inNetwork(process.PID, func() error {
		link, err := netlink.LinkByName(guest.LinkName)
		if err != nil {
			return err
		}
		all, err := netlink.AddrList(link, unix.AF_INET)
		has = slices.ContainsFunc(all, func(a netlink.Addr) bool { return a.IP.Equal(p.endpoint.AsSlice()) })
		return err
	})
	return has && err == nil // A machine that was just killed has no network.
}

// awaitHolder waits until one machine other than the given one has the endpoint, and checks that
// there are never two.
func (p *plane) awaitHolder(not string) string {
	p.t.Helper()
	deadline := time.Now().Add(soon)
	for {
		holders := p.holders()
		if len(holders) > 1 {
			p.t.Errorf("machines %q have the endpoint at the same time", holders)
		}
		if i := slices.IndexFunc(holders, func(id string) bool { return id != not }); i >= 0 && len(holders) == 1 {
			return holders[i]
		}
		if time.Now().After(deadline) {
			p.t.Fatalf("holders of the endpoint: %q, want one other than %q", holders, not)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// TestControlPlaneMovesItsEndpoint has no manager, and no metal service either.
func TestControlPlaneMovesItsEndpoint(t *testing.T) {
	p := newPlane(t, 3)
	first := p.awaitHolder("")
	if first != p.machines[0].ID {
		t.Errorf("the first machine lost the endpoint to %s", first)
	}

	t.Run("its API server hangs", func(t *testing.T) {
		api := p.run(first, "pidof kube-apiserver")
		p.run(first, "kill -STOP "+api)
		began := time.Now()
		second := p.awaitHolder(first)
		t.Logf("moved after %.1f s", time.Since(began).Seconds())
		p.answers(second)
		p.run(first, "kill -CONT "+api)
	})
	t.Run("its agent hangs", func(t *testing.T) {
		holder := p.awaitHolder("")
		p.run(holder, "pkill -STOP -f ^/usr/sbin/drover-endpoint")
		p.answers(p.awaitHolder(holder)) // The kernel removed the address before.
		p.run(holder, "pkill -CONT -f ^/usr/sbin/drover-endpoint")
	})
	t.Run("its agent is stopped", func(t *testing.T) {
		holder := p.awaitHolder("")
		p.run(holder, "systemctl stop drover-endpoint")
		p.answers(p.awaitHolder(holder))
		p.run(holder, "systemctl start drover-endpoint")
	})
	t.Run("the machine is killed", func(t *testing.T) {
		holder := p.awaitHolder("")
		other := p.machines[slices.IndexFunc(p.machines, func(m driver.Machine) bool { return m.ID != holder })].ID
		p.eventually(other, "kubectl --kubeconfig /etc/kubernetes/admin.conf get --raw /readyz/etcd", soon)
		process, _ := p.mustMachine(holder).process()
		if err := syscall.Kill(process.PID, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		next := p.awaitHolder(holder)
		t.Logf("moved after %.1f s", time.Since(began).Seconds())
		p.answers(next)
	})
}

// answers checks that the API server of a machine answers at the endpoint, for the others and for
// the host.
func (p *plane) answers(id string) {
	p.t.Helper()
	for _, m := range p.machines {
		if _, running := p.mustMachine(m.ID).process(); running && m.ID != id {
			p.eventually(m.ID, "curl -skf --max-time 2 https://"+p.endpoint.String()+":6443/livez", soon)
		}
	}
	if out, err := exec.CommandContext(p.t.Context(), "curl", "-skf", "--max-time", "5", "https://"+p.endpoint.String()+":6443/livez").CombinedOutput(); err != nil {
		p.t.Errorf("the host gets no answer from the endpoint: %v: %s", err, out)
	}
	if got := p.run(id, "cat /proc/sys/kernel/hostname"); got != p.holderOfLease(id) {
		p.t.Errorf("the Lease is of %q, want %q", p.holderOfLease(id), got)
	}
}

func (p *plane) holderOfLease(id string) string {
	return p.eventually(id, "kubectl --kubeconfig /etc/kubernetes/admin.conf -n kube-system get lease drover-endpoint -o jsonpath={.spec.holderIdentity}", soon)
}
