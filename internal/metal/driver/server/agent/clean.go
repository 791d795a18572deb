package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/drover-dev/drover/internal/kube/node"
)

// dataDirs have what a node leaves behind. They may be mount points.
func dataDirs() []string {
	return []string{
		"/var/lib/kubelet", "/var/lib/containerd", "/var/lib/etcd", "/var/lib/cni", "/run/containerd", "/run/kubeadm", "/run/cluster-api",
		"/var/log/pods", "/var/log/containers", "/etc/cni/net.d", "/etc/kubernetes/pki", "/etc/kubernetes/manifests", "/etc/kubernetes/tmp",
	}
}

// configFiles are those that kubeadm writes.
func configFiles() []string {
	return []string{
		"/etc/kubernetes/admin.conf", "/etc/kubernetes/super-admin.conf", "/etc/kubernetes/kubelet.conf", "/etc/kubernetes/bootstrap-kubelet.conf",
		"/etc/kubernetes/controller-manager.conf", "/etc/kubernetes/scheduler.conf",
	}
}

// Cleaned is the result of cleaning.
type Cleaned struct {
	// Left is everything that is still there.
	Left []string `json:"left"`
}

// clean restores the server and prints what is still there. It can be repeated, and does nothing to
// a server that is no device.
func clean(ctx context.Context, _ []string) error {
	a, err := open(ctx)
	if err != nil {
		return err
	}
	defer a.release()
	if a.state.Phase == Empty {
		return json.NewEncoder(os.Stdout).Encode(Cleaned{})
	}
	if err := a.enter(CleaningUp); err != nil {
		return err
	}
	quiet := os.Stdout
	os.Stdout = os.Stderr // The output of programs isn't the result.
	a.stop()
	a.unmount()
	for _, path := range append(dataDirs(), configFiles()...) {
		a.try(removeData(path))
	}
	a.removeNetwork()
	a.try(a.journal.restore())
	a.try(setHostname(a.state.Hostname))
	a.try(a.engine.Run("systemctl", "daemon-reload"))
	left := a.left()
	if len(left) == 0 {
		a.try(os.Remove(a.journal.file()))
		if err := writeJSON(stateFile, State{}); err != nil {
			return err
		}
	}
	return json.NewEncoder(quiet).Encode(Cleaned{Left: left})
}

// try logs an error. What it leaves behind is found by the verification.
func (a *agent) try(err error) {
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		a.engine.Printf("%v", err)
	}
}

// stop ends everything that runs for the node.
func (a *agent) stop() {
	for _, unit := range []string{Unit, UpgradeUnit, "drover-endpoint", "drover-addresses", "kubelet"} {
		a.try(a.engine.Run("systemctl", "disable", "--now", unit))
	}
	for _, pid := range scripts() {
		_ = unix.Kill(pid, unix.SIGKILL)
	}
	if _, err := os.Stat("/etc/kubernetes/kubelet.conf"); err == nil {
		a.try(a.engine.Run("timeout", "90", "/usr/local/bin/kubeadm", "reset", "--force"))
	}
	a.try(a.engine.Run("systemctl", "disable", "--now", "containerd"))
	for range 20 {
		pids := ours()
		if len(pids) == 0 {
			return
		}
		for _, pid := range pids {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
		<-time.After(100 * time.Millisecond)
	}
}

// scripts are the processes of userdata that is still being executed.
func scripts() []int {
	var out []int
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range files {
		line, _ := os.ReadFile(file)
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err == nil && pid != os.Getpid() && (bytes.Contains(line, []byte("/var/lib/cloud/instance/scripts/")) || bytes.HasPrefix(line, []byte("kubeadm\x00"))) {
			out = append(out, pid)
		}
	}
	return out
}

// ours are the processes that run one of our programs, and those in Pods. The agent is one itself.
func ours() []int {
	var out []int
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil || pid == os.Getpid() || pid == 1 {
			continue
		}
		program, _ := os.Readlink(filepath.Join(dir, "exe"))
		groups, _ := os.ReadFile(filepath.Join(dir, "cgroup"))
		if strings.HasPrefix(program, node.ServerDir+"/bin/") || strings.HasPrefix(program, nextDir+"/") || bytes.Contains(groups, []byte("kubepods")) {
			out = append(out, pid)
		}
	}
	return out
}

// mounts returns the mount points below the directories of a node, the innermost first.
func mounts() []string {
	data, _ := os.ReadFile("/proc/self/mounts")
	var out []string
	for line := range strings.Lines(string(data)) {
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		for _, dir := range append(dataDirs(), "/run/netns") {
			if strings.HasPrefix(fields[1], dir+"/") && (dir != "/run/netns" || strings.HasPrefix(fields[1], "/run/netns/cni-")) {
				out = append(out, fields[1])
				break
			}
		}
	}
	slices.Reverse(out)
	return out
}

func (a *agent) unmount() {
	for _, m := range mounts() {
		a.try(unix.Unmount(m, unix.MNT_DETACH))
		if strings.HasPrefix(m, "/run/netns/") {
			a.try(os.Remove(m))
		}
	}
}

// removeData empties a directory and removes it, unless something is mounted there.
func removeData(path string) error {
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	if info.IsDir() {
		if err := empty(path); err != nil {
			return err
		}
		return nil // The journal knows whether the directory was there.
	}
	return os.Remove(path)
}

func linkNames() []string {
	links, _ := netlink.LinkList()
	var out []string
	for _, l := range links {
		out = append(out, l.Attrs().Name)
	}
	return out
}

// tables returns the tables of the packet filter.
func (a *agent) tables() []string {
	out, err := a.engine.Output("nft", "list", "tables")
	if err != nil {
		return nil
	}
	var tables []string
	for line := range strings.Lines(out) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "table "); ok {
			tables = append(tables, name)
		}
	}
	return tables
}

// removeNetwork removes interfaces and packet filter tables that were not there before, and the
// rules of kube-proxy and of the network in tables that were.
func (a *agent) removeNetwork() {
	for _, name := range a.newLinks() {
		if l, err := netlink.LinkByName(name); err == nil {
			a.try(netlink.LinkDel(l))
		}
	}
	for _, table := range a.newTables() {
		a.try(a.engine.Run(append([]string{"nft", "delete", "table"}, strings.Fields(table)...)...))
	}
	const keep = `for t in iptables ip6tables; do command -v $t-save >/dev/null && $t-save 2>/dev/null | grep -q -e KUBE- -e CNI- && $t-save | grep -v -e KUBE- -e CNI- | $t-restore; done; true`
	a.try(a.engine.Run("sh", "-c", keep))
	a.try(dropAddresses())
}

// newLinks are virtual interfaces that the node has made.
func (a *agent) newLinks() []string {
	links, _ := netlink.LinkList()
	var out []string
	for _, l := range links {
		virtual := slices.Contains([]string{"bridge", "veth", "vxlan", "dummy", "ipvlan", "wireguard"}, l.Type())
		if virtual && !slices.Contains(a.state.Links, l.Attrs().Name) {
			out = append(out, l.Attrs().Name)
		}
	}
	return out
}

func (a *agent) newTables() []string {
	return slices.DeleteFunc(a.tables(), func(t string) bool { return slices.Contains(a.state.Tables, t) })
}

// ports are those of a node.
func ports() []string {
	return []string{"6443", "10250", "2379", "2380", "10257", "10259"}
}

// left verifies the restoration: it returns everything that is still there.
func (a *agent) left() []string {
	var left []string
	add := func(what string, items ...string) {
		for _, item := range items {
			left = append(left, what+" "+item)
		}
	}
	for _, dir := range dataDirs() {
		if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 {
			add("files in", dir)
		}
	}
	for _, file := range configFiles() {
		if _, err := os.Lstat(file); err == nil {
			add("file", file)
		}
	}
	for name := range units() {
		if _, err := os.Lstat(filepath.Join(unitDir, name)); err == nil && !a.had(filepath.Join(unitDir, name)) {
			add("unit", name)
		}
	}
	for _, pid := range ours() {
		add("process", strconv.Itoa(pid))
	}
	add("mount", mounts()...)
	add("network interface", a.newLinks()...)
	add("packet filter table", a.newTables()...)
	for _, port := range ports() {
		if l, err := net.Listen("tcp", ":"+port); err != nil {
			add("a listener on port", port)
		} else {
			_ = l.Close()
		}
	}
	slices.Sort(left)
	return left
}

// had reports whether there was something at a path before.
func (a *agent) had(path string) bool {
	all, err := a.journal.read()
	return err == nil && slices.ContainsFunc(all, func(c change) bool { return c.Path == path && (c.Backup != "" || c.Link != "") })
}
