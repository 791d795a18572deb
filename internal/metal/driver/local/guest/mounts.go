package guest

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// mount is one call of mount(2), with its target relative to the new root.
type mount struct {
	source, target, kind string
	flags                uintptr
	data                 string
}

func (m mount) do(root string) error {
	target, err := openPath(root, m.target)
	if err == nil {
		defer target.Close()
		err = unix.Mount(m.source, pathOf(target), m.kind, m.flags, m.data)
	}
	if err != nil {
		return fmt.Errorf("mounting %s %q on %q: %w", m.kind, m.source, m.target, err)
	}
	return nil
}

// openPath opens a file below a root as a path. Links that lead out of the root are an error: root
// on a machine may have created them.
func openPath(root, path string) (*os.File, error) {
	dir, err := os.OpenRoot(root)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	return dir.OpenFile(relative(path), unix.O_PATH, 0)
}

// relative returns a path below a root in the form of os.Root.
func relative(path string) string { return cmp.Or(strings.TrimLeft(path, "/"), ".") }

// pathOf returns a path that leads to an open file.
func pathOf(f *os.File) string { return "/proc/self/fd/" + strconv.Itoa(int(f.Fd())) }

// staging is where the first process sees the root file system that the host prepared. It could not
// reach the original through directories that only root of the host may enter.
const staging = "/tmp"

// enterRoot completes the root file system, which is the working directory, and makes it the root
// of this process. Nothing of the host is visible afterwards.
func enterRoot() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("making mounts private: %w", err)
	}
	if err := unix.Mount(".", staging, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("mounting the root: %w", err)
	}
	for _, step := range []func(root string) error{mountKernel, mountDevices, hideKernel, mountCgroups} {
		if err := step(staging); err != nil {
			return err
		}
	}
	return pivot(staging)
}

// mountKernel mounts the kernel's file systems. What belongs to the host is read-only.
func mountKernel(root string) error {
	const flags = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC
	for _, m := range []mount{
		{source: "proc", target: "/proc", kind: "proc", flags: flags},
		{source: "sysfs", target: "/sys", kind: "sysfs", flags: flags},
		{source: "tmpfs", target: "/run", kind: "tmpfs", flags: unix.MS_NOSUID | unix.MS_NODEV, data: "mode=755"},
	} {
		if err := m.do(root); err != nil {
			return err
		}
	}
	return protectKernel(root, flags)
}

// protectKernel makes the kernel's settings read-only, except those of the machine's network. Other
// mounts of the same file systems are not affected.
func protectKernel(root string, flags uintptr) error {
	for _, path := range []string{"/proc/sys", "/proc/irq", "/proc/bus", "/proc/fs", "/proc/acpi", "/proc/scsi"} {
		if _, err := os.Stat(filepath.Join(root, path)); err != nil {
			continue // The kernel lacks it.
		}
		if err := bindSelf(root, path, flags|unix.MS_RDONLY); err != nil {
			return err
		}
	}
	if err := bindSelf(root, "/proc/sys/net", flags); err != nil {
		return err
	}
	if err := mountTunables(root); err != nil {
		return err
	}
	return readOnly(root, "/sys", flags)
}

// bindSelf mounts a directory on itself with other flags.
func bindSelf(root, path string, flags uintptr) error {
	if err := (mount{source: filepath.Join(root, path), target: path, flags: unix.MS_BIND}).do(root); err != nil {
		return err
	}
	return mount{target: path, flags: flags | unix.MS_BIND | unix.MS_REMOUNT}.do(root)
}

// hideKernel hides files that affect the whole host or reveal its memory.
func hideKernel(root string) error {
	for _, path := range []string{"/proc/sysrq-trigger", "/proc/kcore", "/proc/kallsyms", "/proc/keys", "/proc/timer_list", "/proc/latency_stats"} {
		if _, err := os.Stat(filepath.Join(root, path)); err != nil {
			continue // The kernel lacks it.
		}
		if err := (mount{source: filepath.Join(root, os.DevNull), target: path, flags: unix.MS_BIND}).do(root); err != nil {
			return err
		}
	}
	return nil
}

// readOnly makes a mount read-only. The flags are those that it has already.
func readOnly(root, target string, flags uintptr) error {
	return mount{target: target, flags: flags | unix.MS_BIND | unix.MS_REMOUNT | unix.MS_RDONLY}.do(root)
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
	if err := createDevices(root); err != nil {
		return err
	}
	links := map[string]string{"ptmx": "pts/ptmx", "fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2"}
	for name, target := range links {
		if err := os.Symlink(target, filepath.Join(root, "dev", name)); err != nil {
			return err
		}
	}
	return nil
}

// devices are the device files of a machine, with their numbers.
func devices() map[string][2]uint32 {
	return map[string][2]uint32{
		"null": {1, 3}, "zero": {1, 5}, "full": {1, 7}, "random": {1, 8}, "urandom": {1, 9}, "kmsg": {1, 11}, "tty": {5, 0}, "net/tun": {10, 200}, "fuse": {10, 229},
	}
}

// createDevices creates files of the machine's own, so that the modes of the host's can't be
// changed. A host that is itself confined may not allow it.
func createDevices(root string) error {
	for name, number := range devices() {
		source := filepath.Join("/dev", name)
		if _, err := os.Stat(source); err != nil {
			continue // The kernel lacks it.
		}
		path := filepath.Join(root, source)
		err := unix.Mknod(path, unix.S_IFCHR|0o666, int(unix.Mkdev(number[0], number[1])))
		if errors.Is(err, unix.EPERM) {
			err = bindFile(source, root, source)
		} else if err == nil {
			err = os.Chmod(path, deviceMode(name))
		}
		if err != nil {
			return fmt.Errorf("creating device %q: %w", source, err)
		}
	}
	return nil
}

func deviceMode(name string) os.FileMode {
	if name == "kmsg" {
		return 0o600
	}
	return 0o666
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
