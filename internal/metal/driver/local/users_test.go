package local

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/drover-dev/drover/internal/metal/driver/local/guest"
)

// TestUsersAreMappedUnlessTheHostCannot covers what a machine can bring about, such as namespaces
// that are used up: the next machine must not get users of the host.
func TestUsersAreMappedUnlessTheHostCannot(t *testing.T) {
	missing := &os.PathError{Op: "fork/exec", Err: unix.ENOSYS}
	for name, tt := range map[string]struct {
		spec    guest.Spec
		failure error
		mapped  bool
		boots   bool
	}{
		"the host can":                        {mapped: true, boots: true},
		"the kernel can't":                    {failure: missing, boots: true},
		"a file system can't":                 {failure: fmt.Errorf("mapping: %w", unix.EINVAL), boots: true},
		"the host may not":                    {failure: unix.EPERM, boots: true},
		"namespaces are used up":              {failure: &os.PathError{Op: "fork/exec", Err: unix.ENOSPC}},
		"memory is used up":                   {failure: unix.ENOMEM},
		"processes are used up":               {failure: unix.EAGAIN},
		"a link leads out of the root":        {failure: errors.New("path escapes from parent")},
		"it did before, and the kernel can't": {spec: guest.Spec{Mapped: true}, failure: missing},
		"it did before":                       {spec: guest.Spec{Mapped: true}, mapped: true, boots: true},
		"a test asks for users of the host":   {spec: guest.Spec{HostUsers: true}, boots: true},
	} {
		t.Run(name, func(t *testing.T) {
			var console strings.Builder
			u, err := chooseUsers(tt.spec, &console, func(u users) error {
				if u.first != 0 {
					return tt.failure
				}
				return nil
			})
			if (err == nil) != tt.boots || (u.first != 0) != tt.mapped {
				t.Errorf("users %+v, error %v", u, err)
			}
			if !tt.boots && !errors.Is(err, tt.failure) {
				t.Errorf("error %v does not say why", err)
			}
			if unmapped := tt.boots && !tt.mapped; strings.Contains(console.String(), "can't be mapped") != unmapped {
				t.Errorf("console %q", console.String())
			}
		})
	}
}

// TestNamespacesOfAMachineCountAgainstItsOwnUser: the kernel counts namespaces that a machine
// creates against the owner of its user namespace. If that was root, one machine could use up those
// of all.
func TestNamespacesOfAMachineCountAgainstItsOwnUser(t *testing.T) {
	if err := isRoot(); err != nil {
		t.Skip(err)
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	u := newUsers("x")
	namespace, err := u.namespace()
	if unsupported(err) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer namespace.Close()
	var owner uint32
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, namespace.Fd(), unix.NS_GET_OWNER_UID, uintptr(unsafe.Pointer(&owner))); errno != 0 {
		t.Fatal(errno)
	}
	if int(owner) != u.first {
		t.Errorf("the namespace belongs to user %d, want %d", owner, u.first)
	}
	if unix.Geteuid() != 0 || unix.Getegid() != 0 {
		t.Error("the thread is another user now")
	}
	if err := exec.CommandContext(t.Context(), "chown", "0", t.TempDir()).Run(); err != nil {
		t.Errorf("the thread has lost capabilities: %v", err)
	}
}
