package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/drover-dev/drover/internal/metal"
	"github.com/drover-dev/drover/internal/metal/admin"
)

// machineLink is the link of a local machine to the host.
const machineLink = "eth0"

// benchMachine is a local machine.
type benchMachine struct {
	home, id, address string

	pid int // of the process that was stopped

	mu     sync.Mutex // for what follows, which is also observed
	port   int        // the host's end of the link that was cut
	handle *netlink.Handle
	of     int // the first process that the handle is for
}

// first returns the first process of the machine, or 0.
func (m *benchMachine) first() int {
	data, err := os.ReadFile(filepath.Join(m.home, "driver-local", "machines", m.id, "state.json"))
	var state struct{ PID int }
	if err != nil || json.Unmarshal(data, &state) != nil || syscall.Kill(state.PID, 0) != nil {
		return 0
	}
	return state.PID
}

// network returns a handle of the machine's network. Handles are kept: what observes holders is
// called often.
func (m *benchMachine) network() (*netlink.Handle, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	pid := m.first()
	if pid == 0 {
		return nil, os.ErrProcessDone
	}
	if m.handle != nil && m.of == pid {
		return m.handle, nil
	}
	ns, err := netns.GetFromPid(pid)
	if err != nil {
		return nil, err
	}
	defer ns.Close()
	handle, err := netlink.NewHandleAt(ns)
	if err != nil {
		return nil, err
	}
	if m.handle != nil {
		m.handle.Close()
	}
	m.handle, m.of = handle, pid
	return handle, nil
}

// has reports whether the machine has an address.
func (m *benchMachine) has(address string) bool {
	network, err := m.network()
	if err != nil {
		return false
	}
	link, err := network.LinkByName(machineLink)
	if err != nil {
		return false
	}
	all, err := network.AddrList(link, unix.AF_INET)
	for _, a := range all {
		if err == nil && a.IP.String() == address {
			return true
		}
	}
	return false
}

// holder returns the machine with the endpoint, or nil.
func (p *controlPlane) holder() *benchMachine {
	for _, m := range p.machines {
		if m.has(p.address) {
			return m
		}
	}
	return nil
}

// observe returns for how long two machines that can be reached had the endpoint at the same time.
func (p *controlPlane) observe(ctx context.Context) (overlap time.Duration) {
	last := time.Now()
	for wait(ctx, observeInterval) == nil {
		holders := 0
		for _, m := range p.machines {
			if !m.isCut() && m.has(p.address) {
				holders++
			}
		}
		now := time.Now()
		if holders > 1 {
			overlap += now.Sub(last)
		}
		last = now
	}
	return overlap
}

// killMachine ends a machine without a shutdown, as a loss of power does.
func killMachine(_ context.Context, m *benchMachine) error {
	return syscall.Kill(m.first(), syscall.SIGKILL)
}

func (b *bench) startMachine(ctx context.Context, m *benchMachine) error {
	c, err := admin.Open(metal.Home{Dir: b.metalHome()})
	if err != nil {
		return err
	}
	return c.Do(ctx, http.MethodPost, "/metal/v1/devices/"+m.id+"/actions", map[string]string{"type": "power_on"}, nil)
}

// cutNetwork takes the host's end of the machine's link down.
func cutNetwork(_ context.Context, m *benchMachine) error {
	network, err := m.network()
	if err != nil {
		return err
	}
	link, err := network.LinkByName(machineLink)
	if err != nil {
		return err
	}
	m.cut(link.Attrs().ParentIndex)
	return m.setPort(netlink.LinkSetDown)
}

// cut records the port that is down, or 0.
func (m *benchMachine) cut(port int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.port = port
}

func (m *benchMachine) isCut() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.port != 0
}

func restoreNetwork(_ context.Context, m *benchMachine) error {
	err := m.setPort(netlink.LinkSetUp)
	m.cut(0)
	return err
}

func (m *benchMachine) setPort(change func(netlink.Link) error) error {
	port, err := netlink.LinkByIndex(m.port)
	if err != nil {
		return fmt.Errorf("finding the port of machine %q: %w", m.id, err)
	}
	return change(port)
}

// stopAPIServer stops the API server of the machine, which keeps its connections.
func stopAPIServer(_ context.Context, m *benchMachine) error {
	inside, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/net", m.first()))
	if err != nil {
		return err
	}
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return err
	}
	for _, file := range files {
		line, err := os.ReadFile(file)
		if err != nil || !bytes.HasPrefix(line, []byte("kube-apiserver\x00")) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err != nil {
			return err
		}
		if its, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/net", pid)); err == nil && its == inside {
			m.pid = pid
			return syscall.Kill(pid, syscall.SIGSTOP)
		}
	}
	return errors.New("the machine runs no API server")
}

// continueAPIServer continues it, unless the kubelet has replaced it.
func continueAPIServer(_ context.Context, m *benchMachine) error {
	if err := syscall.Kill(m.pid, syscall.SIGCONT); !errors.Is(err, syscall.ESRCH) {
		return err
	}
	return nil
}
