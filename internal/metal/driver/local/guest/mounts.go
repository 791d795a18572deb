package guest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/drover-dev/drover/internal/kube/node"
)

// mount is one call of mount(2), with its target relative to the new root.
type mount struct {
	source, target, kind string
	flags                uintptr
	data                 string
}

func (m mount) do(root string) error {
	target := filepath.Join(root, m.target)
	if err := unix.Mount(m.source, target, m.kind, m.flags, m.data); err != nil {
		return fmt.Errorf("mounting %s %q on %q: %w", m.kind, m.source, m.target, err)
	}
	return nil
}

// enterRoot mounts the machine's root file system and makes it the root of this process. Nothing of
// the host is visible afterwards.
func enterRoot(s Spec) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("making mounts private: %w", err)
	}
	root := filepath.Join(s.Dir, "root")
	overlay := mount{source: "overlay", kind: "overlay", data: overlayOptions(s)}
	if err := overlay.do(root); err != nil {
		return err
	}
	for _, step := range []func(root string) error{
		s.mountData, mountKernel, s.mountImages, mountDevices, mountCgroups, func(root string) error { return bindFile(s.Program, root, node.MachineProgram) },
	} {
		if err := step(root); err != nil {
			return err
		}
	}
	return pivot(root)
}

// overlayOptions escapes the separators of options and layers.
func overlayOptions(s Spec) string {
	escape := strings.NewReplacer(`\`, `\\`, ",", `\,`, ":", `\:`)
	return fmt.Sprintf("lowerdir=%s,upperdir=%s,workdir=%s",
		escape.Replace(s.Lower), escape.Replace(filepath.Join(s.Dir, "upper")), escape.Replace(filepath.Join(s.Dir, "work")))
}

func (s Spec) mountData(root string) error {
	for name, path := range DataDirs() {
		if err := (mount{source: filepath.Join(s.Dir, "data", name), target: path, flags: unix.MS_BIND}).do(root); err != nil {
			return err
		}
	}
	return nil
}

// mountKernel mounts the kernel's file systems.
func mountKernel(root string) error {
	for _, m := range []mount{
		{source: "proc", target: "/proc", kind: "proc", flags: unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC},
		{source: "sysfs", target: "/sys", kind: "sysfs", flags: unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC},
		{source: "tmpfs", target: "/run", kind: "tmpfs", flags: unix.MS_NOSUID | unix.MS_NODEV, data: "mode=755"},
	} {
		if err := m.do(root); err != nil {
			return err
		}
	}
	if err := mountTunables(root); err != nil {
		return err
	}
	modules := "/lib/modules"
	if _, err := os.Stat(modules); err != nil {
		return nil //nolint:nilerr // a kernel without modules
	}
	if err := os.MkdirAll(filepath.Join(root, "usr", modules), 0o755); err != nil {
		return err
	}
	return mount{source: modules, target: "/usr/lib/modules", flags: unix.MS_BIND | unix.MS_REC}.do(root)
}

// tunables are settings that the kubelet requires, with their values. They belong to the host, so a
// machine gets files instead.
func tunables() map[string]string {
	return map[string]string{
		"vm/overcommit_memory": "1", "vm/panic_on_oom": "0", "kernel/panic": "10", "kernel/panic_on_oops": "1",
		"kernel/keys/root_maxkeys": "1000000", "kernel/keys/root_maxbytes": "25000000",
	}
}

func mountTunables(root string) error {
	for name, value := range tunables() {
		file := filepath.Join(root, "run", "drover", "tunables", name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(file, []byte(value+"\n"), 0o600); err != nil {
			return err
		}
		target := filepath.Join("/proc/sys", name)
		if _, err := os.Stat(filepath.Join(root, target)); err != nil {
			continue // The kernel lacks it.
		}
		if err := (mount{source: file, target: target, flags: unix.MS_BIND}).do(root); err != nil {
			return err
		}
	}
	return nil
}

func mountDevices(root string) error {
	if err := (mount{source: "tmpfs", target: "/dev", kind: "tmpfs", flags: unix.MS_NOSUID, data: "mode=755"}).do(root); err != nil {
		return err
	}
	for _, dir := range []string{"pts", "shm", "mqueue", "net"} {
		if err := os.Mkdir(filepath.Join(root, "dev", dir), 0o755); err != nil {
			return err
		}
	}
	for _, m := range []mount{
		{source: "devpts", target: "/dev/pts", kind: "devpts", flags: unix.MS_NOSUID | unix.MS_NOEXEC, data: "newinstance,ptmxmode=0666,mode=620,gid=5"},
		{source: "tmpfs", target: "/dev/shm", kind: "tmpfs", flags: unix.MS_NOSUID | unix.MS_NODEV, data: "mode=1777"},
		{source: "mqueue", target: "/dev/mqueue", kind: "mqueue", flags: unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC},
	} {
		// Message queues are an optional kernel feature.
		if err := m.do(root); err != nil && !errors.Is(err, unix.ENODEV) {
			return err
		}
	}
	for _, device := range []string{"null", "zero", "full", "random", "urandom", "tty", "kmsg", "fuse", "net/tun"} {
		if err := bindFile(filepath.Join("/dev", device), root, filepath.Join("/dev", device)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	links := map[string]string{"ptmx": "pts/ptmx", "fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2"}
	for name, target := range links {
		if err := os.Symlink(target, filepath.Join(root, "dev", name)); err != nil {
			return err
		}
	}
	return nil
}

// bindFile mounts a file of the host in the machine.
func bindFile(source, root, target string) error {
	if _, err := os.Stat(source); err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(root, target), os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	f.Close()
	return mount{source: source, target: target, flags: unix.MS_BIND}.do(root)
}

// pivot makes root the root of the process and unmounts the host's root.
func pivot(root string) error {
	if err := os.Chdir(root); err != nil {
		return err
	}
	// The old root is mounted on top of the new one and then unmounted.
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("changing the root: %w", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("unmounting the host's root: %w", err)
	}
	if err := os.Chdir("/"); err != nil {
		return err
	}
	// Mounts of containers must propagate to other containers.
	return unix.Mount("", "/", "", unix.MS_REC|unix.MS_SHARED, "")
}
