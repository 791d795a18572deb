package server

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/drover-dev/drover/internal/metal/driver"
	"github.com/drover-dev/drover/internal/metal/remote"
)

// inspectScript prints facts, one per line, as key=value. It changes nothing.
//
//go:embed inspect.sh
var inspectScript string

const (
	// minFreeDisk is what the programs, the images and a few Pods need.
	minFreeDisk = 6 << 30
	// maxSkew is how far clocks may differ before certificates are not valid yet.
	maxSkew = 30 * time.Second
)

// dial connects to a server and pins its key.
func (d *Driver) dial(ctx context.Context, s driver.Server) (*remote.Client, error) {
	c, err := remote.Dial(ctx, remote.Options{
		SSH: s.SSH, Secrets: s.Secrets,
		Pin: func(host, key string) error { return d.inventory.PinHostKey(s.ID, host, key) },
	})
	if err != nil {
		return nil, fmt.Errorf("connecting to server %q: %w", s.Name, err)
	}
	return c, nil
}

// Inspect implements driver.Inspector.
func (d *Driver) Inspect(ctx context.Context, s driver.Server) (driver.Facts, []driver.Problem, error) {
	c, err := remote.Dial(ctx, remote.Options{
		SSH: s.SSH, Secrets: s.Secrets,
		Pin: func(host, key string) error { return d.inventory.PinHostKey(s.ID, host, key) },
	})
	var failed *remote.Error
	if errors.As(err, &failed) {
		return driver.Facts{}, []driver.Problem{{Check: "access", Message: err.Error(), Remedy: failed.Remedy}}, nil
	}
	if err != nil {
		return driver.Facts{}, nil, err
	}
	defer c.Close()
	if err := c.Root(ctx, "true", remote.Streams{}); err != nil {
		var exit *remote.ExitError
		if !errors.As(err, &exit) {
			return driver.Facts{}, nil, err
		}
		return driver.Facts{}, []driver.Problem{{
			Check: "sudo", Message: fmt.Sprintf("%s may not become root without a password: %v", s.SSH.User, err),
			Remedy: fmt.Sprintf("run on the server: echo '%s ALL=(ALL) NOPASSWD: ALL' > /etc/sudoers.d/drover", s.SSH.User),
		}}, nil
	}
	out, err := c.Output(ctx, inspectScript)
	if err != nil {
		return driver.Facts{}, nil, fmt.Errorf("collecting facts: %w", err)
	}
	facts, problems := judge(parseFacts(out), s.Name, time.Now())
	return facts, problems, nil
}

// answers are the lines of the script. A key may have several.
type answers map[string][]string

func parseFacts(out string) answers {
	a := answers{}
	for line := range strings.Lines(out) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok && value != "" {
			a[key] = append(a[key], strings.Trim(value, `"`))
		}
	}
	return a
}

func (a answers) get(key string) string {
	if len(a[key]) == 0 {
		return ""
	}
	return a[key][0]
}

func (a answers) number(key string) int64 {
	n, _ := strconv.ParseInt(a.get(key), 10, 64)
	return n
}

// facts reads what the script says about the server.
func (a answers) facts() driver.Facts {
	f := driver.Facts{
		Arch: goArch(a.get("arch")), OS: a.get("os"), Kernel: a.get("kernel"), CPUs: int(a.number("cpus")), MemoryBytes: a.number("memory_kib") << 10,
		DiskBytes: a.number("disk_kib") << 10, FreeDiskBytes: a.number("free_kib") << 10, Link: a.get("link"), MAC: a.get("mac"), MachineID: a.get("machine_id"),
	}
	f.Address, _ = netip.ParsePrefix(a.get("address"))
	f.Gateway, _ = netip.ParseAddr(a.get("gateway"))
	return f
}

func goArch(machine string) string {
	switch machine {
	case "x86_64":
		return "amd64"
	case "aarch64":
		return "arm64"
	default:
		return machine
	}
}

// judge returns the facts and everything that prevents the use of a server.
func judge(a answers, name string, now time.Time) (driver.Facts, []driver.Problem) {
	facts := a.facts()
	var problems []driver.Problem
	for _, check := range checks() {
		if message, remedy := check.find(a, facts, now); message != "" {
			problems = append(problems, driver.Problem{Check: check.name, Message: message, Remedy: strings.ReplaceAll(remedy, "NAME", name)})
		}
	}
	return facts, problems
}

// check is one thing that a server needs.
type check struct {
	name string
	find func(a answers, f driver.Facts, now time.Time) (message, remedy string)
}

// checks are in the order in which a person would repair what they find.
func checks() []check {
	return []check{
		{"os", findOS},
		{"arch", findArch},
		{"clock", findClock},
		{"network", findNetwork},
		{"disk", findDisk},
		{"memory", findMemory},
		{"swap", findSwap},
		{"modules", findModules},
		{"tools", findTools},
		{"services", findServices},
		{"ports", findPorts},
		{"remnants", findRemnants},
	}
}

func findOS(a answers, f driver.Facts, _ time.Time) (message, remedy string) {
	oldest := map[string]float64{"debian": 12, "ubuntu": 22.04}
	version, _ := strconv.ParseFloat(a.get("os_version"), 64)
	switch {
	case a.get("systemctl") == "":
		return "there is no systemd", "install Debian 12, Ubuntu 22.04 or another distribution with systemd"
	case oldest[a.get("os_id")] > version:
		return fmt.Sprintf("%s is too old", f.OS), "upgrade to Debian 12 or Ubuntu 22.04, or newer"
	}
	return "", ""
}

func findArch(_ answers, f driver.Facts, _ time.Time) (message, remedy string) {
	if f.Arch == runtime.GOARCH {
		return "", ""
	}
	return fmt.Sprintf("the server is %s, and the programs of this Drover are for %s", f.Arch, runtime.GOARCH), "run metal with a Drover for " + f.Arch
}

func findClock(a answers, _ driver.Facts, now time.Time) (message, remedy string) {
	skew := time.Unix(a.number("time"), 0).Sub(now)
	if skew.Abs() <= maxSkew {
		return "", ""
	}
	return fmt.Sprintf("the clock differs from that of this host by %s", skew.Round(time.Second)), "install chrony or systemd-timesyncd on the server, and check the clock of this host"
}

func findNetwork(_ answers, f driver.Facts, _ time.Time) (message, remedy string) {
	if f.Address.IsValid() && f.Gateway.IsValid() && f.Link != "" {
		return "", ""
	}
	return "there is no default route with an IPv4 address", "configure a static address and a default route"
}

func findDisk(_ answers, f driver.Facts, _ time.Time) (message, remedy string) {
	if f.FreeDiskBytes >= minFreeDisk {
		return "", ""
	}
	return fmt.Sprintf("%.1f GiB are free below /var/lib, and %d GiB are needed", float64(f.FreeDiskBytes)/(1<<30), minFreeDisk>>30), "free some space"
}

func findMemory(_ answers, f driver.Facts, _ time.Time) (message, remedy string) {
	const least = 1700 << 20 // That is what kubeadm requires.
	if f.MemoryBytes >= least && f.CPUs >= 2 {
		return "", ""
	}
	return fmt.Sprintf("%d CPUs and %d MiB of memory are too few", f.CPUs, f.MemoryBytes>>20), "a node needs 2 CPUs and 2 GiB of memory"
}

func findSwap(a answers, _ driver.Facts, _ time.Time) (message, remedy string) {
	if len(a["swap"]) == 0 {
		return "", ""
	}
	return "swap is on: " + strings.Join(a["swap"], ", "), "run on the server: swapoff -a; and remove the swap entries of /etc/fstab"
}

func findModules(a answers, _ driver.Facts, _ time.Time) (message, remedy string) {
	if len(a["missing_module"]) == 0 {
		return "", ""
	}
	return "the kernel has no " + strings.Join(a["missing_module"], ", "), "install the kernel package of the distribution, such as linux-image-amd64 or linux-generic, and reboot"
}

func findTools(a answers, _ driver.Facts, _ time.Time) (message, remedy string) {
	if len(a["missing_tool"]) == 0 {
		return "", ""
	}
	return "these programs are missing: " + strings.Join(a["missing_tool"], ", "), "run on the server: apt-get install mount iproute2 nftables iptables conntrack procps kmod"
}

func findServices(a answers, _ driver.Facts, _ time.Time) (message, remedy string) {
	if len(a["service"]) == 0 {
		return "", ""
	}
	return "these services run containers already: " + strings.Join(a["service"], ", "), "stop and remove them: a server belongs to Drover alone"
}

func findPorts(a answers, _ driver.Facts, _ time.Time) (message, remedy string) {
	var taken []string
	for _, port := range a["listen"] {
		if slices.Contains([]string{"6443", "2379", "2380", "10250", "10257", "10259"}, port) {
			taken = append(taken, port)
		}
	}
	if len(taken) == 0 {
		return "", ""
	}
	return "something listens on port " + strings.Join(taken, ", "), "stop it: `ss -ltnp` on the server shows what it is"
}

func findRemnants(a answers, _ driver.Facts, _ time.Time) (message, remedy string) {
	switch {
	case a.get("device") != "":
		return "the server is still device " + a.get("device") + " of a metal service", "if that device is gone, run `drover server reset NAME`"
	case len(a["remnant"]) > 0:
		return "there are remnants of another cluster: " + strings.Join(a["remnant"], ", "), "save what you need, then run on the server: kubeadm reset -f; rm -rf /etc/kubernetes /var/lib/etcd /var/lib/kubelet /etc/cni/net.d"
	}
	return "", ""
}
