package local

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/drover-dev/drover/internal/kube/node"
)

// Usable returns what this host lacks to run local machines in a home, and what to do about it, or
// nil. It changes nothing.
func Usable(home string) error {
	for _, check := range []func() error{
		isRoot,
		func() error { return notOverlay(home) },
		func() error { _, err := node.NewBuilder("", slog.New(slog.DiscardHandler)); return err },
		node.CheckTools,
		func() error { return kernelHas(features()) },
	} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

func isRoot() error {
	if os.Geteuid() != 0 {
		return errors.New("local machines need root: run as root, or use simulated ones, the driver \"memory\"")
	}
	return nil
}

// notOverlay rejects a home whose file system can't hold overlay layers.
func notOverlay(home string) error {
	var st unix.Statfs_t
	dir := home
	err := unix.Statfs(dir, &st)
	for errors.Is(err, unix.ENOENT) && dir != filepath.Dir(dir) {
		dir = filepath.Dir(dir)
		err = unix.Statfs(dir, &st)
	}
	if err != nil {
		return fmt.Errorf("reading the file system type of %q: %w", home, err)
	}
	if st.Type == unix.OVERLAYFS_SUPER_MAGIC {
		return fmt.Errorf("local machines can't live in %q, which is on overlayfs: choose a metal home on a disk or on tmpfs", home)
	}
	return nil
}

// feature is a kernel feature with a command that tests it in temporary namespaces.
type feature struct{ name, command string }

// features are the kernel features that machines need. Testing also loads kernel modules.
func features() []feature {
	return []feature{
		{"private mounts", "mount --make-rprivate /"},
		{"tmpfs", "mount -t tmpfs none /tmp"},
		{"overlayfs", "mkdir /tmp/l /tmp/u /tmp/w /tmp/m && mount -t overlay -o lowerdir=/tmp/l,upperdir=/tmp/u,workdir=/tmp/w none /tmp/m"},
		{"bridges", "ip link add bridge0 type bridge"},
		{"pairs of links (veth)", "ip link add veth0 type veth peer name veth1"},
		{"nftables", "nft add table ip drover"},
		{"nftables of bridges", "nft add table bridge drover"},
	}
}

// kernelHas reports the first missing feature.
func kernelHas(wanted []feature) error {
	if dirs, err := hierarchies(); err != nil {
		return fmt.Errorf("detecting cgroups: %w", err)
	} else if len(dirs) == 0 {
		return fmt.Errorf("local machines need cgroups, and none are mounted at %s", cgroupRoot)
	}
	var script strings.Builder
	for _, f := range wanted {
		fmt.Fprintf(&script, "feature='%s'; { %s; } || { echo \"$feature\"; exit 1; }\n", f.name, f.command)
	}
	var lacks, why bytes.Buffer
	cmd := exec.Command("/bin/sh", "-c", script.String())
	cmd.Stdout, cmd.Stderr = &lacks, &why
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: namespaces}
	switch err := cmd.Run(); {
	case err == nil:
		return nil
	case lacks.Len() == 0:
		return fmt.Errorf("local machines need namespaces, which this host does not allow: %w: in a container, give it all privileges, or use the driver \"memory\"", err)
	default:
		return fmt.Errorf("local machines need %s, which the kernel of this host does not have: %s",
			strings.TrimSpace(lacks.String()), strings.TrimSpace(why.String()))
	}
}

// loadModules loads the kernel modules that userdata often loads, which machines can't do. The
// kernel loads others on demand. One that is missing may be part of the kernel.
func loadModules() error {
	return keepBridgesUnfiltered(bridgeSettings, func() {
		for _, module := range []string{"overlay", "br_netfilter", "nf_conntrack"} {
			_ = exec.Command("modprobe", "--quiet", module).Run()
		}
	})
}

// bridgeSettings are the settings of br_netfilter, which every network namespace has.
const bridgeSettings = "/proc/sys/net/bridge"

// keepBridgesUnfiltered loads br_netfilter. Once loaded, it sends the traffic of all bridges of the
// host through the rules for IP, which firewalls don't expect. Machines have settings of their own.
func keepBridgesUnfiltered(settings string, load func()) error {
	before := exists(settings)
	load()
	if before {
		return nil // The host wants what it has.
	}
	files, err := filepath.Glob(filepath.Join(settings, "bridge-nf-call-*"))
	if err != nil {
		return err
	}
	for _, file := range files {
		if err := os.WriteFile(file, []byte("0"), 0o600); err != nil {
			return fmt.Errorf("keeping the host's bridges as they were: %w", err)
		}
	}
	return nil
}
