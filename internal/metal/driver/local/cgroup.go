package local

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drover-dev/drover/internal/metal/driver/local/confine"
	"github.com/drover-dev/drover/internal/metal/driver/local/guest"
)

const (
	cgroupRoot = "/sys/fs/cgroup"
	// period is the period of CPU quotas, in microseconds.
	period = 100_000
)

// cgroupName returns the cgroup of a home below the root of every hierarchy.
func (d *Driver) cgroupName() string { return "drover-" + d.name }

// hierarchies returns the directories of the cgroup hierarchies.
func hierarchies() ([]string, error) {
	if guest.Unified() {
		return []string{cgroupRoot}, nil
	}
	dirs, err := hierarchiesV1()
	if err != nil {
		return nil, err
	}
	if beside := hierarchyV2(); beside != "" {
		dirs = append(dirs, beside)
	}
	return dirs, nil
}

// hierarchyV2 returns the directory of cgroup v2, also where it has no controllers because they
// belong to version 1, or the empty string.
func hierarchyV2() string {
	if guest.Unified() {
		return cgroupRoot
	}
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(mounts)) {
		if fields := strings.Fields(line); len(fields) > 2 && fields[2] == "cgroup2" {
			return fields[1]
		}
	}
	return ""
}

func hierarchiesV1() ([]string, error) {
	data, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil, err
	}
	var dirs []string
	for _, h := range guest.Hierarchies(string(data)) {
		dirs = append(dirs, filepath.Join(cgroupRoot, h.Name))
	}
	return dirs, nil
}

// maxTasks is how many processes and threads a machine may have. Hosts have 32768 or more.
const maxTasks = 1 << 14

// limits are the resource limits of a machine; zero means unlimited.
type limits struct {
	cpus   int
	memory int64
}

// inner is the name of the cgroup that a machine sees as the root of the hierarchy. Limits and
// filters are set on the one above, which the machine can't reach.
const inner = "machine"

// cgroup is the cgroup of a machine in all hierarchies.
type cgroup struct {
	home, id string
	limits   limits
	// owner is the user of the host that is root on the machine.
	owner int
	log   io.Writer
}

// enter creates the cgroups of a machine and moves this process into them.
func (g cgroup) enter() error {
	dirs, err := hierarchies()
	if err != nil {
		return err
	}
	v2 := hierarchyV2()
	for _, dir := range dirs {
		own := filepath.Join(dir, g.home, g.id)
		if dir == v2 {
			// Filters of an earlier boot remain until their cgroup is removed.
			if err := removeCgroups(own); err != nil {
				return err
			}
		}
		for _, d := range []string{filepath.Dir(own), own, filepath.Join(own, inner)} {
			if err := makeCgroup(d); err != nil {
				return fmt.Errorf("creating cgroup %q: %w", d, err)
			}
		}
		if err := g.limits.apply(own, runtime.NumCPU()); err != nil {
			return fmt.Errorf("limiting cgroup %q: %w", own, err)
		}
		if err := errors.Join(g.delegate(filepath.Join(own, inner)), join(filepath.Join(own, inner))); err != nil {
			return err
		}
	}
	g.confine(v2)
	return nil
}

// delegate lets root of the machine manage its cgroup.
func (g cgroup) delegate(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := os.Chown(filepath.Join(dir, e.Name()), g.owner, g.owner); err != nil {
			return fmt.Errorf("delegating cgroup %q: %w", dir, err)
		}
	}
	return os.Chown(dir, g.owner, g.owner)
}

// confine filters devices and settings of the kernel. A host that can't do it has machines that are
// less confined, which their consoles mention.
func (g cgroup) confine(v2 string) {
	err := errors.New("cgroups of version 2 are not mounted")
	if v2 != "" {
		err = confine.Cgroup(filepath.Join(v2, g.home, g.id))
	}
	if err != nil {
		fmt.Fprintf(g.log, "access to devices and to settings of the kernel is not restricted: %v\n", err)
	}
}

// join moves this process into a cgroup.
func join(dir string) error {
	if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(os.Getpid())), 0o600); err != nil {
		return fmt.Errorf("entering cgroup %q: %w", dir, err)
	}
	return nil
}

// joinProcess moves this process into the cgroups of another one.
func joinProcess(pid int) error {
	data, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cgroup"))
	if err != nil {
		return err
	}
	v2 := hierarchyV2()
	for line := range strings.Lines(string(data)) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) < 3 {
			continue
		}
		dir := v2
		if all := guest.Hierarchies(line); len(all) > 0 {
			dir = filepath.Join(cgroupRoot, all[0].Name)
		}
		if dir == "" {
			continue // Version 2 is not mounted.
		}
		if err := join(filepath.Join(dir, fields[2])); err != nil {
			return err
		}
	}
	return nil
}

// makeCgroup creates a cgroup that can contain processes.
func makeCgroup(dir string) error {
	parent := filepath.Dir(dir)
	if controllers, err := os.ReadFile(filepath.Join(parent, "cgroup.controllers")); err == nil {
		for c := range strings.FieldsSeq(string(controllers)) {
			// The kubelet reports a missing controller itself.
			_ = os.WriteFile(filepath.Join(parent, "cgroup.subtree_control"), []byte("+"+c), 0o600)
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	// Before Linux 5.11, the memory limit of a cgroup v1 does not apply to those below unless asked.
	// One that has cgroups below it can't be changed any more.
	if hierarchy := filepath.Join(dir, "memory.use_hierarchy"); exists(hierarchy) {
		_ = os.WriteFile(hierarchy, []byte("1"), 0o600)
	}
	// A cgroup v1 cpuset is initially empty and accepts no process.
	for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
		value, err := os.ReadFile(filepath.Join(parent, file))
		if err != nil || guest.Unified() {
			continue
		}
		if own, err := os.ReadFile(filepath.Join(dir, file)); err == nil && strings.TrimSpace(string(own)) == "" {
			if err := os.WriteFile(filepath.Join(dir, file), value, 0o600); err != nil {
				return err
			}
		}
	}
	return nil
}

// apply writes the limits to the files of this hierarchy.
func (l limits) apply(dir string, hostCPUs int) error {
	files := map[string]string{"pids.max": strconv.Itoa(maxTasks)}
	if l.memory > 0 {
		files["memory.max"] = strconv.FormatInt(l.memory, 10)
		files["memory.limit_in_bytes"] = strconv.FormatInt(l.memory, 10)
	}
	if l.cpus > 0 && l.cpus < hostCPUs {
		files["cpu.max"] = fmt.Sprintf("%d %d", l.cpus*period, period)
		files["cpu.cfs_quota_us"] = strconv.Itoa(l.cpus * period)
	}
	for name, value := range files {
		path := filepath.Join(dir, name)
		if !exists(path) {
			continue
		}
		if err := os.WriteFile(path, []byte(value), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// removeCgroup removes the cgroups of a machine, or of the home if id is empty.
func (d *Driver) removeCgroup(id string) error {
	dirs, err := hierarchies()
	if err != nil {
		return err
	}
	for _, dir := range dirs {
		if err := removeCgroups(filepath.Join(dir, d.cgroupName(), id)); err != nil {
			return err
		}
	}
	return nil
}

// removeCgroups removes a tree of cgroups, children first. The kernel keeps a cgroup for a moment
// after its last process has exited.
func removeCgroups(top string) error {
	var dirs []string
	err := filepath.WalkDir(top, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			dirs = append(dirs, path)
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
	if err != nil {
		return err
	}
	deadline := time.Now().Add(killTimeout)
	for _, dir := range slices.Backward(dirs) {
		if err := removeBusy(dir, deadline); err != nil {
			return fmt.Errorf("removing cgroup %q: %w", dir, err)
		}
	}
	return nil
}

func removeBusy(dir string, deadline time.Time) error {
	for {
		err := unix.Rmdir(dir)
		if err == nil || errors.Is(err, unix.ENOENT) {
			return nil
		}
		if !errors.Is(err, unix.EBUSY) || time.Now().After(deadline) {
			return err
		}
		<-time.After(10 * time.Millisecond)
	}
}

// removeLeftovers removes network links and cgroups of machines that have no directory.
func (d *Driver) removeLeftovers(ids []string) error {
	dirs, err := hierarchies()
	if err != nil {
		return err
	}
	for _, dir := range dirs {
		entries, _ := os.ReadDir(filepath.Join(dir, d.cgroupName()))
		for _, e := range entries {
			if !e.IsDir() || slices.Contains(ids, e.Name()) {
				continue
			}
			d.log.Info("removing leftovers of a killed machine", "machine", e.Name())
			if err := errors.Join(d.removeLink(e.Name()), d.removeCgroup(e.Name())); err != nil {
				return fmt.Errorf("removing leftovers of machine %q: %w", e.Name(), err)
			}
		}
	}
	return nil
}
