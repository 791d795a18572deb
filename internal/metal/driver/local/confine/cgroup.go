package confine

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Cgroup confines a cgroup v2 and all cgroups below it to the devices of a machine, and to settings
// of the kernel that belong to the machine's namespaces. The latter holds for every mount of proc.
// The filters can be removed only by processes that can open the directory, so it must be above the
// root of the machine's cgroup namespace.
func Cgroup(dir string) error {
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("opening cgroup %q: %w", dir, err)
	}
	defer unix.Close(fd)
	for _, p := range []program{deviceProgram(), settingProgram()} {
		if err := p.attachTo(fd); err != nil {
			return err
		}
	}
	return nil
}

// device is a character device that machines may use.
type device struct{ major, minor, access int32 }

const (
	accessRead  = 2
	accessWrite = 4
	readWrite   = accessRead | accessWrite
	anyMinor    = -1
	// typeCharacter is a character device for the filter of devices.
	typeCharacter = 2
)

func allowedDevices() []device {
	all := []device{
		{1, 3, readWrite},                    // null
		{1, 5, readWrite},                    // zero
		{1, 7, readWrite},                    // full
		{1, 8, readWrite},                    // random
		{1, 9, readWrite},                    // urandom
		{1, 11, accessRead},                  // kmsg, which the kubelet watches
		{5, 0, readWrite}, {5, 2, readWrite}, // tty, ptmx
		{10, 200, readWrite}, {10, 229, readWrite}, // net/tun, fuse
	}
	for major := int32(136); major <= 143; major++ {
		all = append(all, device{major, anyMinor, readWrite}) // pts
	}
	return all
}

// deviceProgram denies opening all other devices. Creating them is harmless, and some images
// contain them.
func deviceProgram() program {
	code := []instruction{
		load32(r2, r1, 0), // type, and access shifted by 16
		move(r3, r2), and(r2, 0xffff), shiftRight(r3, 16), and(r3, readWrite),
		load32(r4, r1, 4), load32(r5, r1, 8), // major, minor
	}
	code = append(code, unless(r3, 0, 2))
	code = append(code, verdict(1)...)
	code = append(code, instruction{code: 0x15, registers: r2, value: typeCharacter, offset: 2})
	code = append(code, verdict(0)...)
	for _, d := range allowedDevices() {
		code = append(code, d.rule()...)
	}
	return program{name: "drover_devices", kind: unix.BPF_PROG_TYPE_CGROUP_DEVICE, attach: unix.BPF_CGROUP_DEVICE, code: append(code, verdict(0)...)}
}

// rule allows one device.
func (d device) rule() []instruction {
	tail := append([]instruction{move(r6, r3), and(r6, readWrite&^d.access), unless(r6, 0, 2)}, verdict(1)...)
	if d.minor != anyMinor {
		tail = append([]instruction{unless(r5, d.minor, len(tail))}, tail...)
	}
	return append([]instruction{unless(r4, d.major, len(tail))}, tail...)
}

const (
	// settingName is the helper that copies the name of a setting, such as net/ipv4/ip_forward.
	settingName = 101
	// nameSize is the size of the copy, which is truncated.
	nameSize = 32
)

// ownSettings are the settings outside of net that belong to a namespace of the machine.
func ownSettings() []string {
	return []string{
		"kernel/hostname", "kernel/domainname", "kernel/ns_last_pid",
		"kernel/shmmax", "kernel/shmall", "kernel/shmmni", "kernel/shm_rmid_forced", "kernel/shm_next_id",
		"kernel/msgmax", "kernel/msgmnb", "kernel/msgmni", "kernel/msg_next_id", "kernel/auto_msgmni",
		"kernel/sem", "kernel/sem_next_id",
		"fs/mqueue/msg_default", "fs/mqueue/msg_max", "fs/mqueue/msgsize_default", "fs/mqueue/msgsize_max", "fs/mqueue/queues_max",
	}
}

// settingProgram denies writing settings of the host.
func settingProgram() program {
	code := []instruction{move(r6, r1), load32(r2, r1, 0), unless(r2, 0, 2)} // whether it is a write
	code = append(code, verdict(1)...)
	for offset := int16(-nameSize); offset < 0; offset += 8 {
		code = append(code, zero64(stack, offset))
	}
	code = append(code,
		move(r1, r6), move(r2, stack), add(r2, -nameSize), set(r3, nameSize), set(r4, 0), call(settingName),
		load32(r1, stack, -nameSize), unless(r1, int32(uint32(words("net/", 8)[0])), 2))
	code = append(code, verdict(1)...)
	for _, name := range ownSettings() {
		code = append(code, isNamed(name)...)
	}
	return program{name: "drover_sysctl", kind: unix.BPF_PROG_TYPE_CGROUP_SYSCTL, attach: unix.BPF_CGROUP_SYSCTL, code: append(code, verdict(0)...)}
}

// isNamed allows one setting.
func isNamed(name string) []instruction {
	all := words(name, nameSize)
	const perWord, end = 4, 2
	var code []instruction
	for i, w := range all {
		code = append(code, load64(r1, stack, int16(-nameSize+8*i)))
		code = append(code, constant64(r2, w)...)
		code = append(code, unlessSame(r1, r2, (len(all)-1-i)*perWord+end))
	}
	return append(code, verdict(1)...)
}
