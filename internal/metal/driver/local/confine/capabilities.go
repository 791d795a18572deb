package confine

import (
	"bytes"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Thread confines the calling thread and all processes that it starts from now on. The caller must
// have locked the goroutine to its thread, and should end it without unlocking.
//
// Processes that execute a program afterwards get no capability that was dropped. The thread itself
// keeps its own.
func Thread() error {
	for _, c := range dropped() {
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, uintptr(c), 0, 0, 0); err != nil {
			return fmt.Errorf("dropping capability %d: %w", c, err)
		}
	}
	if err := clearInheritable(); err != nil {
		return fmt.Errorf("clearing inheritable capabilities: %w", err)
	}
	if err := installFilter(); err != nil {
		return fmt.Errorf("restricting system calls: %w", err)
	}
	return nil
}

// dropped returns the capabilities that machines don't get.
func dropped() []int {
	all := []int{
		unix.CAP_SYS_MODULE, unix.CAP_SYS_RAWIO, unix.CAP_SYS_BOOT, unix.CAP_SYS_TIME, unix.CAP_SYS_PACCT, unix.CAP_SYS_TTY_CONFIG,
		unix.CAP_MAC_ADMIN, unix.CAP_MAC_OVERRIDE, unix.CAP_AUDIT_CONTROL, unix.CAP_AUDIT_READ, unix.CAP_WAKE_ALARM, unix.CAP_BLOCK_SUSPEND,
		// Opens any file of a file system by its handle. CAP_DAC_OVERRIDE reads the machine's own.
		unix.CAP_DAC_READ_SEARCH,
		// Makes files that the host could not delete.
		unix.CAP_LINUX_IMMUTABLE,
	}
	// Newer capabilities, which older kernels don't know.
	for _, c := range []int{unix.CAP_PERFMON, unix.CAP_BPF, unix.CAP_CHECKPOINT_RESTORE} {
		if c <= lastCapability() {
			all = append(all, c)
		}
	}
	if !logIsRestricted() {
		all = append(all, unix.CAP_SYSLOG)
	}
	return all
}

// lastCapability returns the highest capability of the kernel.
func lastCapability() int {
	data, err := os.ReadFile("/proc/sys/kernel/cap_last_cap")
	if err != nil {
		return 0
	}
	last := 0
	for _, digit := range bytes.TrimSpace(data) {
		last = last*10 + int(digit-'0')
	}
	return last
}

// logIsRestricted reports whether reading /dev/kmsg, as the kubelet does, requires CAP_SYSLOG.
func logIsRestricted() bool {
	data, err := os.ReadFile("/proc/sys/kernel/dmesg_restrict")
	return err == nil && string(bytes.TrimSpace(data)) != "0"
}

// clearInheritable clears the sets that would survive execve despite the bounding set.
func clearInheritable() error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return err
	}
	for i := range data {
		data[i].Inheritable = 0
	}
	if err := unix.Capset(&header, &data[0]); err != nil {
		return err
	}
	return unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
}
