package confine

import "golang.org/x/sys/unix"

const (
	nativeArch = unix.AUDIT_ARCH_AARCH64
	// foreignNumbers is beyond all numbers.
	foreignNumbers = 0x40000000
)

// deniedOnArch are system calls that only this architecture has.
func deniedOnArch() []number { return nil }
