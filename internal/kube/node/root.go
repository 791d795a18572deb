package node

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/drover-dev/drover/internal/kube"
	"github.com/drover-dev/drover/internal/kube/node/host"
)

// skeleton contains our files of the root file system.
//
//go:embed all:skel
var skeleton embed.FS

// MachineProgram is the path of a machine's first process, which is also systemctl and all other
// Applets. The driver mounts it.
const MachineProgram = "/usr/lib/drover/machine"

// KubeProgram is the path of a machine's multi-call Kubernetes binary.
const KubeProgram = "/usr/lib/drover/kube"

// Applets are the names of MachineProgram inside a machine.
func Applets() []string {
	return []string{
		"/usr/bin/systemctl", "/usr/bin/journalctl", "/usr/bin/kubeadm", "/usr/bin/cloud-init",
		"/usr/sbin/poweroff", "/usr/sbin/reboot", "/usr/sbin/halt", "/usr/sbin/shutdown",
		"/usr/sbin/drover-endpoint",
	}
}

// makeRoot assembles the root file system: tools of the host, our skeleton, then our programs.
func (b Builder) makeRoot(root string, tools host.Files, names imageSet) error {
	if err := makeDirectories(root); err != nil {
		return err
	}
	if err := tools.CopyTo(root); err != nil {
		return err
	}
	if err := copySkeleton(root, names.sandbox()); err != nil {
		return err
	}
	if err := b.addPrograms(root); err != nil {
		return err
	}
	return openDirectories(root)
}

// openDirectories makes directories readable for users of a machine, since metal creates private
// ones by default.
func openDirectories(root string) error {
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() || path == filepath.Join(root, "root") {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		return os.Chmod(path, info.Mode()|0o755)
	})
}

// makeDirectories creates the standard directories, and the links of a merged system.
func makeDirectories(root string) error {
	for _, dir := range []string{
		"usr/bin", "usr/sbin", "usr/lib/drover", "usr/lib64", "usr/local/bin", "usr/local/sbin", "usr/libexec/kubernetes", "usr/share",
		"etc/cni/net.d", "etc/kubernetes/manifests", "etc/default", "etc/systemd/system/multi-user.target.wants",
		"etc/containerd/certs.d", "etc/ssh/sshd_config.d", "etc/sysctl.d", "etc/modules-load.d", "etc/apt/keyrings",
		"opt/cni/bin", "var/lib/containerd", "var/lib/kubelet", "var/lib/etcd", "var/lib/cloud/instance", "var/log/pods", "var/log/containers",
		"var/log/units", "var/tmp", "proc", "sys", "dev", "run", "tmp", "root", "home", "mnt", "srv", "media", "boot",
	} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			return err
		}
	}
	for _, name := range []string{"bin", "sbin", "lib", "lib64"} {
		if err := os.Symlink("usr/"+name, filepath.Join(root, name)); err != nil {
			return err
		}
	}
	if err := os.Symlink("../run", filepath.Join(root, "var/run")); err != nil {
		return err
	}
	return errors.Join(
		os.Chmod(filepath.Join(root, "tmp"), 0o777|os.ModeSticky), os.Chmod(filepath.Join(root, "var/tmp"), 0o777|os.ModeSticky),
		os.Chmod(filepath.Join(root, "root"), 0o700),
	)
}

func copySkeleton(root, sandbox string) error {
	return fs.WalkDir(skeleton, "skel", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		to := filepath.Join(root, strings.TrimPrefix(path, "skel"))
		if d.IsDir() {
			return os.MkdirAll(to, 0o755)
		}
		data, err := skeleton.ReadFile(path)
		if err != nil {
			return err
		}
		mode := fs.FileMode(0o644)
		if filepath.Base(path) == "shadow" {
			mode = 0o600
		}
		return errors.Join(os.WriteFile(to, []byte(strings.ReplaceAll(string(data), "PAUSE_IMAGE", sandbox)), mode), os.Chmod(to, mode))
	})
}

// addPrograms adds the programs of a node. Large files are hard links to the cache, so that images
// share them.
func (b Builder) addPrograms(root string) error {
	files := map[string]string{KubeProgram: b.Kube.Path}
	for _, name := range []string{Containerd, Shim, Ctr, Runc} {
		files["/usr/bin/"+name] = b.Programs.Path(name)
	}
	for _, name := range CNIPlugins() {
		files["/opt/cni/bin/"+name] = b.Programs.Path(name)
	}
	for to, from := range files {
		if err := linkOrCopy(from, filepath.Join(root, to)); err != nil {
			return fmt.Errorf("adding %q: %w", to, err)
		}
	}
	links := map[string]string{}
	for _, program := range kube.Programs() {
		links["/usr/bin/"+program] = KubeProgram
	}
	for _, applet := range Applets() {
		links[applet] = MachineProgram
	}
	for _, unit := range []string{"containerd", "kubelet", "ssh", "drover-endpoint"} {
		links["/etc/systemd/system/multi-user.target.wants/"+unit+".service"] = "/usr/lib/systemd/system/" + unit + ".service"
	}
	for path, target := range links {
		if err := os.Symlink(target, filepath.Join(root, path)); err != nil {
			return err
		}
	}
	// A bind mount needs an existing file.
	return os.WriteFile(filepath.Join(root, MachineProgram), nil, 0o755) //nolint:gosec // executable by all users
}
