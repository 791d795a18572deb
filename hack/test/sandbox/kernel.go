package sandbox

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
)

// Kernel lists the kernel objects that tests may leak without a process that holds them, by kind
// and name.
type Kernel map[string]bool

// ours matches the names of links and cgroups of local machines: see internal/metal/driver/local.
func ours() *regexp.Regexp {
	return regexp.MustCompile(`^(drv[0-9a-f]{8}|v[0-9a-f]{14}|drover-[0-9a-f]{8})$`)
}

// Snapshot lists the bridges, links, cgroups and named network namespaces of this machine.
func Snapshot() Kernel {
	return kernelAt("/")
}

func kernelAt(root string) Kernel {
	k := Kernel{}
	for pattern, kind := range map[string]string{
		"sys/class/net/*":          "link",
		"sys/fs/cgroup/drover-*":   "cgroup",
		"sys/fs/cgroup/*/drover-*": "cgroup",
		"run/netns/*":              "network namespace",
	} {
		paths, _ := filepath.Glob(filepath.Join(root, pattern))
		for _, path := range paths {
			if name := filepath.Base(path); (kind == "network namespace" || ours().MatchString(name)) && !inUse(path) {
				k[kind+" "+name] = true
			}
		}
	}
	return k
}

// inUse reports whether a bridge has machines or a cgroup has processes. Those belong to another
// run: the processes of this one have exited.
func inUse(path string) bool {
	if ports, err := os.ReadDir(filepath.Join(path, "brif")); err == nil && len(ports) > 0 {
		return true
	}
	used := false
	_ = filepath.WalkDir(path, func(file string, _ fs.DirEntry, err error) error {
		if err == nil && filepath.Base(file) == "cgroup.procs" {
			pids, _ := os.ReadFile(file)
			used = used || len(pids) > 0
		}
		return nil // it may be removed concurrently
	})
	return used
}

// Since returns what is in k but not in before, sorted.
func (k Kernel) Since(before Kernel) []string {
	var out []string
	for name := range k {
		if !before[name] {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}
