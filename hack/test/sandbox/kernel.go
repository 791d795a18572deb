package sandbox

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"
)

// Kernel lists the kernel objects that tests may leak without a process that holds them, by kind
// and name.
type Kernel map[string]object

// object is what is known about a kernel object.
type object struct {
	// inUse reports whether a bridge has machines or a home, or a cgroup has processes.
	inUse bool
	// home is the directory that the mark of a bridge names, if it has a mark.
	home string
}

const (
	// Prefixes of the keys of bridges, and of the links that connect machines with them, whose names
	// continue with the ID of the bridge.
	bridgePrefix = "link drv"
	portPrefix   = "link v"
	idLength     = 8
)

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
			if name := filepath.Base(path); kind == "network namespace" || ours().MatchString(name) {
				k[kind+" "+name] = objectAt(root, path)
			}
		}
	}
	return k
}

// objectAt describes the object of a path. A bridge whose home exists is that of a plane without
// machines. Homes of tests are temporary, and named themselves if they are left.
func objectAt(root, path string) object {
	o := object{inUse: inUse(path), home: homeOf(path)}
	if _, err := os.Stat(filepath.Join(root, o.home)); o.home != "" && err == nil {
		o.inUse = true
	}
	return o
}

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

// homeOf returns the directory at the end of a bridge's mark.
func homeOf(link string) string {
	mark, err := os.ReadFile(filepath.Join(link, "ifalias"))
	if err != nil {
		return ""
	}
	_, home, _ := strings.Cut(strings.TrimSpace(string(mark)), " /")
	if home == "" {
		return ""
	}
	return "/" + home
}

// Since returns what is in k but not in before, sorted. What is in use belongs to another run: the
// processes of this one have exited.
func (k Kernel) Since(before Kernel) []string {
	var out []string
	for name, o := range k {
		if _, existed := before[name]; existed || o.inUse || k.connectsMachine(name) {
			continue
		}
		if o.home != "" {
			name += " of " + o.home
		}
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// connectsMachine reports whether a link is about to connect a machine with a bridge in use.
func (k Kernel) connectsMachine(name string) bool {
	id, isPort := strings.CutPrefix(name, portPrefix)
	return isPort && len(id) > idLength && k[bridgePrefix+id[:idLength]].inUse
}

// bridges removes the bridges whose homes are below a directory, and returns a line for each.
func bridges(dir string) []string {
	var out []string
	for name, o := range Snapshot() {
		name, isLink := strings.CutPrefix(name, "link ")
		if !isLink || !strings.HasPrefix(o.home, dir+string(filepath.Separator)) {
			continue
		}
		line := fmt.Sprintf("bridge %s of %s", name, o.home)
		link, err := netlink.LinkByName(name)
		if err == nil {
			err = netlink.LinkDel(link)
		}
		if err != nil {
			line += fmt.Sprintf(" (removing it: %v)", err)
		}
		out = append(out, line)
	}
	slices.Sort(out)
	return out
}
