package guest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/drover-dev/drover/internal/kube/node"
)

// Root prepares the root file system of a machine in the mount namespace of the host's thread that
// clones the machine.
type Root struct {
	Spec
	// Users is the user namespace of the machine, or nil. Files on disk belong to the users that the
	// machine sees, whichever users of the host these are.
	Users *os.File
	// First is the user of the host that is root on the machine.
	First int
}

// Mount mounts the root file system on the directory "root" of the machine, and returns it. It
// mounts what the machine itself could not.
func (r Root) Mount() (string, error) {
	if err := r.mountpoints(); err != nil {
		return "", err
	}
	root := filepath.Join(r.Dir, "root")
	lower, disk := r.Lower, r.Dir
	if r.Users != nil {
		lower, disk = filepath.Join(r.Dir, "lower"), filepath.Join(r.Dir, "disk")
		for target, source := range map[string]string{lower: r.Lower, disk: r.Dir} {
			if err := os.MkdirAll(target, 0o755); err != nil {
				return "", err
			}
			if err := r.bind(source, target, ""); err != nil {
				return "", err
			}
		}
	}
	err := r.asRoot(func() error {
		return mount{source: "overlay", kind: "overlay", data: overlayOptions(lower, disk)}.do(root)
	})
	if err != nil {
		return "", err
	}
	for name, path := range DataDirs() {
		if err := (mount{source: filepath.Join(disk, "data", name), target: path, flags: unix.MS_BIND}).do(root); err != nil {
			return "", err
		}
	}
	for _, step := range []func(root string) error{r.mountImages, r.mountModules, r.mountProgram} {
		if err := step(root); err != nil {
			return "", err
		}
	}
	return root, nil
}

// As calls a function that creates what must belong to another user. Only this thread becomes that
// user, and keeps its capabilities. The caller must have locked the goroutine to its thread.
func As(user int, do func() error) error {
	// Otherwise the thread would lose its capabilities.
	const noSetuidFixup = 1 << 2
	if err := unix.Prctl(unix.PR_SET_SECUREBITS, noSetuidFixup, 0, 0, 0); err != nil {
		return fmt.Errorf("keeping capabilities: %w", err)
	}
	defer unix.Prctl(unix.PR_SET_SECUREBITS, 0, 0, 0, 0) //nolint:errcheck // as before
	defer become(0)                                      //nolint:errcheck // as before
	if err := become(user); err != nil {
		return fmt.Errorf("becoming user %d: %w", user, err)
	}
	return do()
}

// become changes the effective user of this thread, and the one for access to files. Functions of
// the library would change all threads.
func become(user int) error {
	const keep = ^uintptr(0)
	for _, call := range []uintptr{unix.SYS_SETRESGID, unix.SYS_SETRESUID} {
		if _, _, errno := unix.RawSyscall(call, keep, uintptr(user), keep); errno != 0 {
			return errno
		}
	}
	return nil
}

// asRoot calls a function that mounts an overlay. The kernel writes to its layers as the user that
// mounted it, which must be one of the machine.
func (r Root) asRoot(do func() error) error {
	if r.Users == nil {
		return do()
	}
	return As(r.First, do)
}

// modules is where the host has its kernel modules.
const modules = "/lib/modules"

// mountpoints creates what to mount on in the writable layer. The host can't do that through the
// mounted file system, because its root does not exist on the machine. Root on the machine may have
// put links there, which must not lead the host to other files.
func (r Root) mountpoints() error {
	upper, err := os.OpenRoot(filepath.Join(r.Dir, "upper"))
	if err != nil {
		return err
	}
	defer upper.Close()
	for _, dir := range []string{"/usr", "/usr/lib", "/usr" + modules, filepath.Dir(node.MachineProgram), imagesMount} {
		if err := upper.MkdirAll(relative(dir), 0o755); err != nil {
			return err
		}
		// Users of the machine traverse them, whatever the umask of the caller.
		if err := upper.Chmod(relative(dir), 0o755); err != nil {
			return err
		}
	}
	// An existing one is not opened, because opening a pipe would wait.
	f, err := upper.OpenFile(relative(node.MachineProgram), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return f.Close()
}

// Booted reports whether the machine in a directory has completed its first boot.
func Booted(dir string) bool {
	upper, err := os.OpenRoot(filepath.Join(dir, "upper"))
	if err != nil {
		return false
	}
	defer upper.Close()
	_, err = upper.Lstat(relative(bootedFile))
	return err == nil
}

func overlayOptions(lower, disk string) string {
	return fmt.Sprintf("lowerdir=%s,upperdir=%s,workdir=%s", escapeLayer(lower), escapeLayer(filepath.Join(disk, "upper")), escapeLayer(filepath.Join(disk, "work")))
}

// escapeLayer escapes the separators of options and layers.
func escapeLayer(path string) string {
	return strings.NewReplacer(`\`, `\\`, ",", `\,`, ":", `\:`).Replace(path)
}

// bind mounts a directory or file of the host below a root, with its users mapped to those of the
// machine.
func (r Root) bind(source, root, path string) error {
	if r.Users == nil {
		return mount{source: source, target: path, flags: unix.MS_BIND}.do(root)
	}
	fd, err := unix.OpenTree(unix.AT_FDCWD, source, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return fmt.Errorf("opening %q: %w", source, err)
	}
	defer unix.Close(fd)
	users := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_IDMAP, Userns_fd: uint64(r.Users.Fd())}
	if err := unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH, &users); err != nil {
		return fmt.Errorf("mapping the users of %q: %w", source, err)
	}
	target, err := openPath(root, path)
	if err == nil {
		defer target.Close()
		err = unix.MoveMount(fd, "", int(target.Fd()), "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH)
	}
	if err != nil {
		return fmt.Errorf("mounting %q on %q: %w", source, filepath.Join(root, path), err)
	}
	return nil
}

// bindReadOnly is bind for what the machine must not write.
func (r Root) bindReadOnly(source, root, path string) error {
	if err := r.bind(source, root, path); err != nil {
		return err
	}
	return readOnly(root, path, 0)
}

// mountImages mounts the host's archives read-only.
func (r Root) mountImages(root string) error {
	if r.Images == "" {
		return nil
	}
	return r.bindReadOnly(r.Images, root, imagesMount)
}

// mountProgram mounts the drover program. It can't be written while it runs, but its mode could be
// changed.
func (r Root) mountProgram(root string) error {
	return r.bindReadOnly(r.Program, root, node.MachineProgram)
}

// mountModules mounts the host's kernel modules, which programs look for. An overlay without an
// upper layer can't be made writable, unlike a bind mount.
func (r Root) mountModules(root string) error {
	if _, err := os.Stat(modules); err != nil {
		return nil //nolint:nilerr // a kernel without modules
	}
	empty := filepath.Join(r.Dir, "empty")
	if err := os.MkdirAll(empty, 0o755); err != nil {
		return err
	}
	return mount{source: "overlay", target: "/usr/lib/modules", kind: "overlay", flags: unix.MS_RDONLY, data: "lowerdir=" + modules + ":" + escapeLayer(empty)}.do(root)
}
