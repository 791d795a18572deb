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

// mountCgroups shows the machine its own part of the hierarchies, in the
// version that the host uses.
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

// linkControllers lets "cpu" lead to "cpu,cpuacct" where they are mounted together.
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

// delegate moves this process out of the root of a unified hierarchy, whose
// controllers can only be handed on to children when it is empty.
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
			return fmt.Errorf("handing on controller %q: %w", c, err)
		}
	}
	return nil
}

// unified tells whether the host uses version 2 alone.
func unified(root string) bool {
	_, err := os.Stat(filepath.Join(root, "cgroup.controllers"))
	return err == nil
}

// Unified tells whether this system uses cgroups of version 2 alone.
func Unified() bool { return unified(cgroupRoot) }

// cgroupVersion is 1 also where both are mounted.
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

// Hierarchy is one hierarchy of cgroups of version 1.
type Hierarchy struct {
	Name   string // of the directory it is mounted on
	Option string // of mount(2)
}

// Hierarchies reads /proc/PID/cgroup. Version 2 beside others is left out: no
// controller is in it.
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
