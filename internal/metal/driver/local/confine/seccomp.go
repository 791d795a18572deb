package confine

import (
	"runtime"
	"slices"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// Results of a filter. An error number is the low half of seccompErrno.
const (
	seccompAllow = 0x7fff0000
	seccompErrno = 0x00050000
)

// Offsets in struct seccomp_data. Arguments are 64 bits wide, of which the kernel uses the lower
// half of all that are compared here.
const (
	offsetNumber   = 0
	offsetArch     = 4
	offsetArgument = 16
)

// number is a system call.
type number = uint32

// denied returns the system calls that machines don't get, with the error that they get instead.
// ENOSYS makes programs fall back to another way.
func denied() map[number]unix.Errno {
	all := map[number]unix.Errno{
		// Another kernel, or another part of it.
		unix.SYS_INIT_MODULE: unix.EPERM, unix.SYS_FINIT_MODULE: unix.EPERM, unix.SYS_DELETE_MODULE: unix.EPERM,
		unix.SYS_KEXEC_LOAD: unix.EPERM, unix.SYS_KEXEC_FILE_LOAD: unix.EPERM, unix.SYS_REBOOT: unix.EPERM,
		// Swap, clock, quotas and accounting of the host.
		unix.SYS_SWAPON: unix.EPERM, unix.SYS_SWAPOFF: unix.EPERM, unix.SYS_SETTIMEOFDAY: unix.EPERM, unix.SYS_CLOCK_SETTIME: unix.EPERM,
		unix.SYS_ACCT: unix.EPERM, unix.SYS_QUOTACTL: unix.EPERM, unix.SYS_QUOTACTL_FD: unix.EPERM, unix.SYS_SYSLOG: unix.EPERM,
		// Files of the host on the file system that holds the machine's data.
		unix.SYS_OPEN_BY_HANDLE_AT: unix.EPERM, unix.SYS_FANOTIFY_INIT: unix.EPERM, unix.SYS_FSPICK: unix.EPERM,
		// Processes and memory of the host.
		unix.SYS_PERF_EVENT_OPEN: unix.EPERM, unix.SYS_LOOKUP_DCOOKIE: unix.EPERM, unix.SYS_NFSSERVCTL: unix.EPERM,
		// Keys belong to users, and root is the same user on all machines and on the host.
		unix.SYS_ADD_KEY: unix.ENOSYS, unix.SYS_REQUEST_KEY: unix.ENOSYS, unix.SYS_KEYCTL: unix.ENOSYS,
		// Executes some system calls past this filter.
		unix.SYS_IO_URING_SETUP: unix.ENOSYS, unix.SYS_IO_URING_ENTER: unix.ENOSYS, unix.SYS_IO_URING_REGISTER: unix.ENOSYS,
	}
	for _, n := range deniedOnArch() {
		all[n] = unix.EPERM
	}
	return all
}

// Requests of ioctl(2) that act on the whole file system that holds the machine's data, or on
// someone else's terminal.
const (
	ioctlFreeze   = 0xc0045877 // FIFREEZE
	ioctlThaw     = 0xc0045878 // FITHAW
	ioctlShutdown = 0x8004587d // FS_IOC_SHUTDOWN
	ioctlResize   = 0x40086610 // EXT4_IOC_RESIZE_FS
)

func deniedRequests() []uint32 {
	return []uint32{ioctlFreeze, ioctlThaw, ioctlShutdown, ioctlResize, unix.TIOCSTI, unix.TIOCLINUX}
}

// allowedBPF are the commands of bpf(2) that runc needs for the devices of containers, and network
// plugins for their programs. The others attach programs to the kernel's functions, or open what
// belongs to the host.
func allowedBPF() []uint32 {
	return []uint32{
		unix.BPF_MAP_CREATE, unix.BPF_MAP_LOOKUP_ELEM, unix.BPF_MAP_UPDATE_ELEM, unix.BPF_MAP_DELETE_ELEM, unix.BPF_MAP_GET_NEXT_KEY,
		unix.BPF_PROG_LOAD, unix.BPF_OBJ_PIN, unix.BPF_OBJ_GET, unix.BPF_PROG_ATTACH, unix.BPF_PROG_DETACH, unix.BPF_PROG_GET_FD_BY_ID,
		unix.BPF_OBJ_GET_INFO_BY_FD, unix.BPF_PROG_QUERY, unix.BPF_BTF_LOAD, unix.BPF_MAP_LOOKUP_AND_DELETE_ELEM, unix.BPF_MAP_FREEZE,
		unix.BPF_MAP_LOOKUP_BATCH, unix.BPF_MAP_UPDATE_BATCH, unix.BPF_MAP_DELETE_BATCH,
	}
}

// filter returns the program that decides about each system call.
func filter() []bpf.Instruction {
	f := []bpf.Instruction{
		// Programs of another ABI would have other numbers for the same system calls.
		bpf.LoadAbsolute{Off: offsetArch, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: nativeArch, SkipTrue: 1},
		deny(unix.ENOSYS),
		bpf.LoadAbsolute{Off: offsetNumber, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpLessThan, Val: foreignNumbers, SkipTrue: 1},
		deny(unix.ENOSYS),
	}
	all := denied()
	numbers := make([]number, 0, len(all))
	for n := range all {
		numbers = append(numbers, n)
	}
	slices.Sort(numbers)
	for _, n := range numbers {
		f = append(f, bpf.JumpIf{Cond: bpf.JumpEqual, Val: n, SkipFalse: 1}, deny(all[n]))
	}
	f = append(f, onArgument(unix.SYS_SOCKET, 0, equals([]uint32{unix.AF_VSOCK}, deny(unix.EAFNOSUPPORT)))...)
	f = append(f, onArgument(unix.SYS_IOCTL, 1, equals(deniedRequests(), deny(unix.EPERM)))...)
	f = append(f, onArgument(unix.SYS_BPF, 0, append(equals(allowedBPF(), allow()), deny(unix.EPERM)))...)
	// A remount that is not one of a bind mount changes the file system for everyone, the host
	// included.
	f = append(f, onArgument(unix.SYS_MOUNT, 3, append([]bpf.Instruction{
		bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: unix.MS_REMOUNT | unix.MS_BIND},
	}, equals([]uint32{unix.MS_REMOUNT}, deny(unix.EPERM))...))...)
	return append(f, allow())
}

func deny(e unix.Errno) bpf.Instruction { return bpf.RetConstant{Val: seccompErrno | uint32(e)} }

func allow() bpf.Instruction { return bpf.RetConstant{Val: seccompAllow} }

// onArgument runs a part of the program with an argument of one system call. The number is in the
// accumulator before and afterwards.
func onArgument(n number, argument uint32, part []bpf.Instruction) []bpf.Instruction {
	all := []bpf.Instruction{
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: n, SkipFalse: uint8(len(part) + 2)},
		bpf.LoadAbsolute{Off: offsetArgument + 8*argument, Size: 4},
	}
	all = append(all, part...)
	return append(all, bpf.LoadAbsolute{Off: offsetNumber, Size: 4})
}

// equals returns a result if the accumulator has one of the values.
func equals(values []uint32, result bpf.Instruction) []bpf.Instruction {
	var all []bpf.Instruction
	for _, v := range values {
		all = append(all, bpf.JumpIf{Cond: bpf.JumpEqual, Val: v, SkipFalse: 1}, result)
	}
	return all
}

// installFilter installs the filter on the calling thread.
func installFilter() error {
	raw, err := bpf.Assemble(filter())
	if err != nil {
		return err
	}
	program := make([]unix.SockFilter, 0, len(raw))
	for _, r := range raw {
		program = append(program, unix.SockFilter{Code: r.Op, Jt: r.Jt, Jf: r.Jf, K: r.K})
	}
	prog := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	// Without the flag, older kernels slow down all processes of the machine.
	_, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_SPEC_ALLOW, uintptr(unsafe.Pointer(&prog)))
	runtime.KeepAlive(program)
	if errno != 0 {
		return errno
	}
	return nil
}
