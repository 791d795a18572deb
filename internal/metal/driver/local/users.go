package local

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/drover-dev/drover/internal/metal/driver/local/guest"
)

const (
	// userCount is the number of users of a machine. Pods may use numbers beyond those of Linux
	// distributions, and have user namespaces of their own.
	userCount = 1 << 24
	// firstRange is the first of the host's users that machines get. Other tools that map users take
	// them from lower numbers.
	firstRange = 1 << 31
	// ranges leaves out the last range, because its last number is no user.
	ranges = 1<<7 - 1
)

// users are the users of the host that the users of a machine are. The zero value means that they
// are the same.
type users struct{ first int }

// newUsers returns the users of a machine, which are the same at every boot. Two machines may have
// the same ones, which their other namespaces keep apart.
func newUsers(id string) users {
	sum := sha256.Sum256([]byte(id))
	return users{firstRange + int(binary.BigEndian.Uint16(sum[:])%ranges)*userCount}
}

func (u users) mapping() []syscall.SysProcIDMap {
	return []syscall.SysProcIDMap{{ContainerID: 0, HostID: u.first, Size: userCount}}
}

// start starts a process as the root of a user namespace. The namespace belongs to the machine's
// own user of the host: the kernel counts namespaces, inotify instances and more against it, so
// that a machine exhausts neither root's nor those of others. The caller must have locked the
// goroutine to its thread.
func (u users) start(cmd *exec.Cmd) error {
	if u.first == 0 {
		return cmd.Start()
	}
	attr := cmd.SysProcAttr
	attr.Cloneflags |= syscall.CLONE_NEWUSER
	attr.UidMappings, attr.GidMappings, attr.GidMappingsEnableSetgroups = u.mapping(), u.mapping(), true
	attr.Credential = &syscall.Credential{}
	return guest.As(u.first, cmd.Start)
}

// namespacesLimit is where an administrator disables user namespaces. No machine can write it.
const namespacesLimit = "/proc/sys/user/max_user_namespaces"

// namespace returns a user namespace with the same mapping, for mounts. It is nil if there is none.
func (u users) namespace() (*os.File, error) {
	if u.first == 0 {
		return nil, nil
	}
	if data, err := os.ReadFile(namespacesLimit); err == nil && string(bytes.TrimSpace(data)) == "0" {
		return nil, fmt.Errorf("%s is 0: %w", namespacesLimit, unix.EPERM)
	}
	cmd := exec.Command("cat")
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := u.start(cmd); err != nil {
		return nil, fmt.Errorf("creating a user namespace: %w", err)
	}
	f, err := os.Open(filepath.Join("/proc", strconv.Itoa(cmd.Process.Pid), "ns", "user"))
	in.Close()
	_ = cmd.Wait()
	return f, err
}

// inUserNamespace reports whether a process has another user namespace than this one, which may
// have mapped users itself.
func inUserNamespace(pid int) bool {
	own, err := os.Readlink("/proc/self/ns/user")
	if err != nil {
		return false
	}
	its, err := os.Readlink(filepath.Join("/proc", strconv.Itoa(pid), "ns", "user"))
	return err == nil && its != own
}

// chooseUsers mounts the root file system of a machine with its own users. It falls back to those
// of the host only if the host can't map users, and never once it did: no machine may bring that
// about for itself or for another.
func chooseUsers(spec guest.Spec, console io.Writer, mount func(users) error) (users, error) {
	reason := errors.New("disabled")
	if !spec.HostUsers {
		u := newUsers(spec.ID)
		if reason = mount(u); reason == nil {
			return u, nil
		}
		if spec.Mapped || !unsupported(reason) {
			return users{}, fmt.Errorf("mapping the users of the machine: %w", reason)
		}
	}
	fmt.Fprintf(console, "users of this machine are users of the host, because they can't be mapped: %v\n", reason)
	return users{}, mount(users{})
}

// unsupported reports whether an error means that the kernel, a file system or the host's own
// confinement doesn't allow mapping users. Others, such as exhausted resources, may pass.
func unsupported(err error) bool {
	for _, errno := range []unix.Errno{unix.ENOSYS, unix.EINVAL, unix.EOPNOTSUPP, unix.EPERM} {
		if errors.Is(err, errno) {
			return true
		}
	}
	return false
}
