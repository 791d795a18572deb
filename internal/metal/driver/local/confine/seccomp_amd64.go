package confine

import "golang.org/x/sys/unix"

const (
	nativeArch = unix.AUDIT_ARCH_X86_64
	// foreignNumbers is where numbers of the x32 ABI begin, which has the same architecture.
	foreignNumbers = 0x40000000
)

// deniedOnArch are system calls that only this architecture has.
func deniedOnArch() []number {
	return []number{
		unix.SYS_IOPL, unix.SYS_IOPERM, unix.SYS_CREATE_MODULE, unix.SYS_QUERY_MODULE, unix.SYS_GET_KERNEL_SYMS, unix.SYS_USELIB, unix.SYS_SYSFS, unix.SYS__SYSCTL,
	}
}
