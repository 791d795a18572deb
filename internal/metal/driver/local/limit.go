package local

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// Kubernetes programs watch files, with about 24 inotify instances on a control plane and 11 on a
// worker. The kernel counts them per user of the host. Machines whose users are not mapped run as
// root: the default limit of 128 is exhausted after five or six of them, and kubelets without an
// instance don't start.
const (
	instancesLimit = "/proc/sys/fs/inotify/max_user_instances"
	instances      = 8192
)

// raise raises a kernel limit to the required value if it is lower. The limit is not restored:
// other processes may depend on it, and it costs nothing.
func raise(file string, least int) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("reading a limit of the kernel: %w", err)
	}
	now, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil {
		return fmt.Errorf("reading the limit in %q: %w", file, err)
	}
	if now >= least {
		return nil
	}
	if err := os.WriteFile(file, []byte(strconv.Itoa(least)), 0o600); err != nil {
		return fmt.Errorf("raising a limit of the kernel from %d to %d: %w", now, least, err)
	}
	return nil
}

// openFiles is how many files a process of a machine may open, which is usual on nodes.
const openFiles = 1 << 20

// allowOpenFiles raises the limit of this process, which machines inherit: root on a machine can't
// raise limits. A host that is itself confined may not allow it.
func allowOpenFiles() {
	var now syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &now); err == nil && now.Max < openFiles {
		_ = syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: openFiles, Max: openFiles})
	}
}
