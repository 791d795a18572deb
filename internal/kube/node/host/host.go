// Package host collects programs of the host with everything they need to run elsewhere: shared
// libraries, the dynamic linker, script interpreters, and symbolic links. It reads ELF files itself
// and runs nothing, so it works on any distribution. Start at [Collect].
package host

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Request selects what to collect.
type Request struct {
	// Required programs must exist; Optional ones are added if they exist.
	Required, Optional []string
	// Globs select more files; ELF files are added with their libraries.
	Globs []string
}

// MissingError lists required programs that the host doesn't have.
type MissingError struct {
	Programs []string
	Packages []string // of Debian-based systems
}

func (e *MissingError) Error() string {
	return fmt.Sprintf("this host lacks %s: install them, on Debian and Ubuntu with \"apt-get install %s\"",
		strings.Join(e.Programs, ", "), strings.Join(e.Packages, " "))
}

// Files is a set of files and links, by absolute path on the host. No path contains a symbolic
// link, except for links to top-level directories such as /lib on merged systems.
type Files struct {
	regular map[string]fs.FileInfo
	links   map[string]string
}

// Collect resolves the request.
func Collect(r Request) (Files, error) {
	c := collector{files: Files{regular: map[string]fs.FileInfo{}, links: map[string]string{}}, libraries: libraryPath()}
	var missing []string
	for _, name := range r.Required {
		if !c.program(name) {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		return Files{}, &MissingError{Programs: missing, Packages: packagesOf(missing)}
	}
	for _, name := range r.Optional {
		c.program(name)
	}
	for _, pattern := range r.Globs {
		matches, _ := filepath.Glob(pattern)
		for _, m := range matches {
			c.path(m)
		}
	}
	return c.files, c.err
}

// File is one entry of Files.
type File struct {
	Path   string // absolute
	Target string // of a symbolic link, else empty
	Info   fs.FileInfo
}

// Sorted lists all files sorted by path.
func (f Files) Sorted() []File {
	var all []File
	for path, info := range f.regular {
		all = append(all, File{Path: path, Info: info})
	}
	for path, target := range f.links {
		all = append(all, File{Path: path, Target: target})
	}
	slices.SortFunc(all, func(a, b File) int { return cmp.Compare(a.Path, b.Path) })
	return all
}

// Key changes whenever the name, size or time of a file changes.
func (f Files) Key() string {
	h := sha256.New()
	for _, file := range f.Sorted() {
		fmt.Fprintf(h, "%q %q", file.Path, file.Target)
		if file.Info != nil {
			fmt.Fprintf(h, " %d %d %o", file.Info.Size(), file.Info.ModTime().UnixNano(), file.Info.Mode())
		}
		fmt.Fprintln(h)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Directories lists every directory that the files need, parents first.
func (f Files) Directories() []string {
	dirs := map[string]bool{}
	for _, file := range f.Sorted() {
		for d := filepath.Dir(file.Path); d != "/"; d = filepath.Dir(d) {
			dirs[d] = true
		}
	}
	return slices.Sorted(maps.Keys(dirs))
}

// packagesOf returns the Debian packages of the programs.
func packagesOf(programs []string) []string {
	packages := map[string]bool{}
	for _, p := range programs {
		packages[cmp.Or(debianPackage[p], p)] = true
	}
	return slices.Sorted(maps.Keys(packages))
}

// debianPackage maps programs to packages of another name.
var debianPackage = map[string]string{
	"nft": "nftables", "ip": "iproute2", "ss": "iproute2", "tc": "iproute2", "sshd": "openssh-server", "ssh-keygen": "openssh-client",
	"iptables-save": "iptables", "iptables-restore": "iptables", "ip6tables": "iptables", "ip6tables-save": "iptables", "ip6tables-restore": "iptables",
	"mount": "mount", "umount": "mount", "modprobe": "kmod", "awk": "mawk", "find": "findutils", "xargs": "findutils",
	"sysctl": "procps", "ps": "procps", "getent": "libc-bin",
}

// top replaces a leading directory that is a link to one below /usr.
func top(path string) string {
	for _, dir := range []string{"/bin", "/sbin", "/lib", "/lib64", "/lib32", "/libx32"} {
		if rest, ok := strings.CutPrefix(path, dir+"/"); ok {
			if target, err := os.Readlink(dir); err == nil {
				return filepath.Join("/", target, rest)
			}
		}
	}
	return path
}
