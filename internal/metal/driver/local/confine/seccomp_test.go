package confine

import (
	"encoding/binary"
	"testing"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

func TestFilterOfSystemCalls(t *testing.T) {
	vm, err := bpf.NewVM(filter())
	if err != nil {
		t.Fatal(err)
	}
	const i386 = 0x40000003
	for name, tt := range map[string]struct {
		arch, number uint32
		arguments    [6]uint32
		want         unix.Errno
	}{
		"reading":                      {nativeArch, unix.SYS_READ, [6]uint32{}, 0},
		"reading, on another ABI":      {i386, 3, [6]uint32{}, unix.ENOSYS},
		"a module":                     {nativeArch, unix.SYS_FINIT_MODULE, [6]uint32{}, unix.EPERM},
		"a module, on another ABI":     {i386, 350, [6]uint32{}, unix.ENOSYS},
		"a module, with x32 numbers":   {nativeArch, 0x40000000 | unix.SYS_FINIT_MODULE, [6]uint32{}, unix.ENOSYS},
		"a number beyond all":          {nativeArch, 0xffffffff, [6]uint32{}, unix.ENOSYS},
		"a key":                        {nativeArch, unix.SYS_KEYCTL, [6]uint32{}, unix.ENOSYS},
		"a bind mount":                 {nativeArch, unix.SYS_MOUNT, [6]uint32{3: unix.MS_BIND | unix.MS_REC}, 0},
		"a bind mount made read-only":  {nativeArch, unix.SYS_MOUNT, [6]uint32{3: unix.MS_BIND | unix.MS_REMOUNT | unix.MS_RDONLY}, 0},
		"a file system made read-only": {nativeArch, unix.SYS_MOUNT, [6]uint32{3: unix.MS_REMOUNT | unix.MS_RDONLY}, unix.EPERM},
		"with the old magic number":    {nativeArch, unix.SYS_MOUNT, [6]uint32{3: unix.MS_MGC_VAL | unix.MS_REMOUNT}, unix.EPERM},
		"freezing a file system":       {nativeArch, unix.SYS_IOCTL, [6]uint32{1: ioctlFreeze}, unix.EPERM},
		"the size of a terminal":       {nativeArch, unix.SYS_IOCTL, [6]uint32{1: unix.TIOCGWINSZ}, 0},
		"a filter of devices":          {nativeArch, unix.SYS_BPF, [6]uint32{0: unix.BPF_PROG_LOAD}, 0},
		"a probe of the kernel":        {nativeArch, unix.SYS_BPF, [6]uint32{0: unix.BPF_RAW_TRACEPOINT_OPEN}, unix.EPERM},
		"a map of the host":            {nativeArch, unix.SYS_BPF, [6]uint32{0: unix.BPF_MAP_GET_FD_BY_ID}, unix.EPERM},
		"a command of the future":      {nativeArch, unix.SYS_BPF, [6]uint32{0: 1000}, unix.EPERM},
		"a socket":                     {nativeArch, unix.SYS_SOCKET, [6]uint32{0: unix.AF_INET6}, 0},
		"a socket to the hypervisor":   {nativeArch, unix.SYS_SOCKET, [6]uint32{0: unix.AF_VSOCK}, unix.EAFNOSUPPORT},
	} {
		// The virtual machine reads numbers in the order of networks.
		data := binary.BigEndian.AppendUint32(nil, tt.number)
		data = binary.BigEndian.AppendUint32(data, tt.arch)
		data = binary.BigEndian.AppendUint64(data, 0)
		for _, a := range tt.arguments {
			data = binary.BigEndian.AppendUint64(data, uint64(a)<<32) // its lower half comes first
		}
		want := seccompErrno | int(tt.want)
		if tt.want == 0 {
			want = seccompAllow
		}
		if got, err := vm.Run(data); err != nil || got != want {
			t.Errorf("%s: %#x, %v, want %#x", name, got, err, want)
		}
	}
}
