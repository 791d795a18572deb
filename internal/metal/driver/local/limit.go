package local

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Programs of Kubernetes watch files, with some 24 instances of inotify on a control plane and 11 on a worker. The kernel counts them for each
// user of the host, and root is the user of all machines: the 128 that it allows by default are gone after five or six of them, and kubelets
// that get none don't start.
const (
	instancesLimit = "/proc/sys/fs/inotify/max_user_instances"
	instances      = 8192
)

// raise makes a limit of the kernel no lower than it is needed. It stays: others may count on it meanwhile, and it costs nothing.
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
