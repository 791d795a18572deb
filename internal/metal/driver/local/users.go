package local

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
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

// apply makes a process the root of a user namespace.
func (u users) apply(attr *syscall.SysProcAttr) {
	if u.first == 0 {
		return
	}
	attr.Cloneflags |= syscall.CLONE_NEWUSER
	attr.UidMappings, attr.GidMappings, attr.GidMappingsEnableSetgroups = u.mapping(), u.mapping(), true
	attr.Credential = &syscall.Credential{}
}

// namespace returns a user namespace with the same mapping, for mounts. It is nil if there is none.
func (u users) namespace() (*os.File, error) {
	if u.first == 0 {
		return nil, nil
	}
	cmd := exec.Command("cat")
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	u.apply(cmd.SysProcAttr)
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("creating a user namespace: %w", err)
	}
	f, err := os.Open(filepath.Join("/proc", strconv.Itoa(cmd.Process.Pid), "ns", "user"))
	in.Close()
	_ = cmd.Wait()
	return f, err
}

// inUserNamespace reports whether a process has another user namespace than this one.
func inUserNamespace(pid int) bool {
	own, err := os.Readlink("/proc/self/ns/user")
	if err != nil {
		return false
	}
	its, err := os.Readlink(filepath.Join("/proc", strconv.Itoa(pid), "ns", "user"))
	return err == nil && its != own
}
