package git

import (
	"fmt"
	"os"

	"github.com/skeema/knownhosts"
	"golang.org/x/sys/unix"
)

// readKnownHosts parses a list of host keys. The parser reads files only, so it is given one in
// memory: containers may have no writable file system.
func readKnownHosts(list []byte) (*knownhosts.HostKeyDB, error) {
	fd, err := unix.MemfdCreate("known_hosts", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("reading known hosts: %w", err)
	}
	name := fmt.Sprintf("/proc/self/fd/%d", fd)
	file := os.NewFile(uintptr(fd), name)
	defer file.Close()
	if _, err := file.Write(list); err != nil {
		return nil, fmt.Errorf("reading known hosts: %w", err)
	}
	hosts, err := knownhosts.NewDB(name)
	if err != nil {
		return nil, fmt.Errorf("reading known hosts: %w", err)
	}
	return hosts, nil
}
