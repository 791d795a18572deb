package guest

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

const cgroupRoot = "/sys/fs/cgroup"

// mountCgroups mounts the machine's own part of the hierarchies, in the cgroup version of the host.
func mountCgroups(root string) error {
	if unified(cgroupRoot) {
		if err := (mount{source: "cgroup2", target: cgroupRoot, kind: "cgroup2", flags: unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC}).do(root); err != nil {
			return err
		}
		return delegate(filepath.Join(root, cgroupRoot))
	}
	data, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return err
	}
	if err := (mount{source: "tmpfs", target: cgroupRoot, kind: "tmpfs", data: "mode=755"}).do(root); err != nil {
		return err
	}
	for _, h := range Hierarchies(string(data)) {
		if err := os.Mkdir(filepath.Join(root, cgroupRoot, h.Name), 0o755); err != nil {
			return err
		}
		m := mount{source: "cgroup", target: filepath.Join(cgroupRoot, h.Name), kind: "cgroup", data: h.Option}
		if err := m.do(root); err != nil {
			return err
		}
		if err := linkControllers(filepath.Join(root, cgroupRoot), h); err != nil {
			return err
		}
	}
	return nil
}

// linkControllers links "cpu" to "cpu,cpuacct" where they are mounted together.
func linkControllers(dir string, h Hierarchy) error {
	controllers := strings.Split(h.Name, ",")
	if len(controllers) < 2 {
		return nil
	}
	for _, c := range controllers {
		if err := os.Symlink(h.Name, filepath.Join(dir, c)); err != nil {
			return err
		}
	}
	return nil
}

// delegate moves this process out of the root of a unified hierarchy, which can delegate
// controllers to children only while it contains no process.
func delegate(dir string) error {
	leaf := filepath.Join(dir, "init.scope")
	if err := os.MkdirAll(leaf, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(leaf, "cgroup.procs"), []byte("1"), 0o600); err != nil {
		return fmt.Errorf("moving to %q: %w", leaf, err)
	}
	available, err := os.ReadFile(filepath.Join(dir, "cgroup.controllers"))
	if err != nil {
		return err
	}
	for c := range bytes.FieldsSeq(available) {
		if err := os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), append([]byte("+"), c...), 0o600); err != nil {
			return fmt.Errorf("delegating controller %q: %w", c, err)
		}
	}
	return nil
}

// unified reports whether the host uses only cgroup v2.
func unified(root string) bool {
	_, err := os.Stat(filepath.Join(root, "cgroup.controllers"))
	return err == nil
}

// Unified reports whether this system uses only cgroup v2.
func Unified() bool { return unified(cgroupRoot) }

// cgroupVersion returns 1 also where both versions are mounted.
type cgroupVersion int

const (
	cgroupV1 cgroupVersion = 1
	cgroupV2 cgroupVersion = 2
)

func hostCgroups() cgroupVersion {
	if Unified() {
		return cgroupV2
	}
	return cgroupV1
}

// Hierarchy is a cgroup v1 hierarchy.
type Hierarchy struct {
	Name   string // of the directory it is mounted on
	Option string // of mount(2)
}

// Hierarchies parses /proc/PID/cgroup. It omits cgroup v2 beside v1, which has no controllers.
func Hierarchies(procCgroup string) []Hierarchy {
	var all []Hierarchy
	for line := range strings.Lines(procCgroup) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) < 3 || fields[1] == "" {
			continue
		}
		name, _ := strings.CutPrefix(fields[1], "name=")
		all = append(all, Hierarchy{Name: name, Option: fields[1]})
	}
	return all
}
