package local

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/drover-dev/drover/internal/metal/driver"
)

// memoryFile has the memory of the host.
const memoryFile = "/proc/meminfo"

// Supply implements driver.Supplier: the CPUs and the memory of the host, and the file system of
// the home.
func (d *Driver) Supply() (driver.Supply, error) {
	data, err := os.ReadFile(memoryFile)
	if err != nil {
		return driver.Supply{}, fmt.Errorf("reading the memory of the host: %w", err)
	}
	memory, err := totalMemory(string(data))
	if err != nil {
		return driver.Supply{}, err
	}
	var fs unix.Statfs_t
	if err := unix.Statfs(d.home, &fs); err != nil {
		return driver.Supply{}, fmt.Errorf("reading the size of the file system of %q: %w", d.home, err)
	}
	return driver.Supply{
		Host:          &driver.Resources{CPUs: int64(runtime.NumCPU()), MemoryBytes: memory, DiskBytes: int64(fs.Blocks) * fs.Bsize},
		FreeDiskBytes: int64(fs.Bavail) * fs.Bsize,
	}, nil
}

// totalMemory returns the bytes of memory that the kernel reports.
func totalMemory(meminfo string) (int64, error) {
	for line := range strings.Lines(meminfo) {
		fields := strings.Fields(line)
		if len(fields) < 2 || fields[0] != "MemTotal:" {
			continue
		}
		kib, err := strconv.ParseInt(fields[1], 10, 64)
		if err != nil {
			return 0, fmt.Errorf("reading MemTotal in %q: %w", memoryFile, err)
		}
		return kib << 10, nil
	}
	return 0, fmt.Errorf("%q has no line MemTotal", memoryFile)
}
