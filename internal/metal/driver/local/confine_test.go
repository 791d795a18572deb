package local

import (
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/drover-dev/drover/internal/kube/node"
	"github.com/drover-dev/drover/internal/metal/driver/local/guest"
)

// attackCommand makes the test binary, which machines see as the drover program, call the kernel.
const attackCommand = "attack"

// call is a system call that would succeed, or fail for another reason, on a process that is not
// confined. None has an effect.
type call struct {
	name      string
	number    uintptr
	arguments [5]uintptr
	want      unix.Errno
}

const nowhere = ^uintptr(0) // neither a file descriptor nor an address

func calls() []call {
	path := uintptr(unsafe.Pointer(unsafe.StringData("/nowhere\x00")))
	return []call{
		{"init_module", unix.SYS_INIT_MODULE, [5]uintptr{}, unix.EPERM},
		{"finit_module", unix.SYS_FINIT_MODULE, [5]uintptr{nowhere}, unix.EPERM},
		{"delete_module", unix.SYS_DELETE_MODULE, [5]uintptr{}, unix.EPERM},
		{"kexec_load", unix.SYS_KEXEC_LOAD, [5]uintptr{}, unix.EPERM},
		{"reboot", unix.SYS_REBOOT, [5]uintptr{}, unix.EPERM},
		{"swapon", unix.SYS_SWAPON, [5]uintptr{path}, unix.EPERM},
		{"swapoff", unix.SYS_SWAPOFF, [5]uintptr{path}, unix.EPERM},
		{"settimeofday", unix.SYS_SETTIMEOFDAY, [5]uintptr{}, unix.EPERM},
		{"clock_settime", unix.SYS_CLOCK_SETTIME, [5]uintptr{nowhere}, unix.EPERM},
		{"acct", unix.SYS_ACCT, [5]uintptr{path}, unix.EPERM},
		{"quotactl", unix.SYS_QUOTACTL, [5]uintptr{}, unix.EPERM},
		{"syslog", unix.SYS_SYSLOG, [5]uintptr{10}, unix.EPERM},
		{"open_by_handle_at", unix.SYS_OPEN_BY_HANDLE_AT, [5]uintptr{nowhere}, unix.EPERM},
		{"fanotify_init", unix.SYS_FANOTIFY_INIT, [5]uintptr{}, unix.EPERM},
		{"perf_event_open", unix.SYS_PERF_EVENT_OPEN, [5]uintptr{}, unix.EPERM},
		{"keyctl", unix.SYS_KEYCTL, [5]uintptr{nowhere}, unix.ENOSYS},
		{"bpf, a probe", unix.SYS_BPF, [5]uintptr{unix.BPF_RAW_TRACEPOINT_OPEN}, unix.EPERM},
		{"a remount of a file system", unix.SYS_MOUNT, [5]uintptr{0, path, 0, unix.MS_REMOUNT}, unix.EPERM},
		{"freezing a file system", unix.SYS_IOCTL, [5]uintptr{nowhere, 0xc0045877}, unix.EPERM},
		{"a socket to the hypervisor", unix.SYS_SOCKET, [5]uintptr{unix.AF_VSOCK, unix.SOCK_STREAM}, unix.EAFNOSUPPORT},
	}
}

// attack calls the kernel and prints what it should not have done.
func attack() int {
	for _, c := range calls() {
		_, _, errno := unix.Syscall6(c.number, c.arguments[0], c.arguments[1], c.arguments[2], c.arguments[3], c.arguments[4], 0)
		if errno != c.want {
			fmt.Printf("%s: %v (%d)\n", c.name, errno, errno)
		}
	}
	if !guest.HasMappedUsers() { // Otherwise they mean nothing to the host.
		printCapabilities()
	}
	for _, d := range []string{"/tmp/disk", "/tmp/memory"} {
		if f, err := os.Open(d); err == nil {
			fmt.Printf("%s can be opened\n", d)
			f.Close()
		}
	}
	return 0
}

func printCapabilities() {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var has [2]unix.CapUserData
	if err := unix.Capget(&header, &has[0]); err != nil {
		fmt.Println(err)
	}
	for _, c := range []uint{unix.CAP_SYS_MODULE, unix.CAP_SYS_RAWIO, unix.CAP_SYS_BOOT, unix.CAP_SYS_TIME, unix.CAP_MAC_ADMIN, unix.CAP_DAC_READ_SEARCH} {
		if has[c/32].Permitted&(1<<(c%32)) != 0 {
			fmt.Printf("capability %d\n", c)
		}
	}
}

// program32 is an executable of 32 bits that exits with code 42, or crashes if it can't.
func program32() string {
	code := []byte{0xbb, 42, 0, 0, 0, 0xb8, 1, 0, 0, 0, 0xcd, 0x80, 0xf4}
	word := func(v uint32) []byte { return []byte{byte(v), byte(v >> 8), byte(v >> 16), byte(v >> 24)} }
	const base, headers = 0x08048000, 84
	elf := append([]byte("\x7fELF\x01\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\x03\x00\x01\x00\x00\x00"), word(base+headers)...)
	elf = append(elf, word(52)...)
	elf = append(elf, make([]byte, 8)...)
	elf = append(elf, 52, 0, 32, 0, 1, 0, 0, 0, 0, 0, 0, 0)
	size := uint32(headers + len(code))
	for _, v := range []uint32{1, 0, base, base, size, size, 5, 0x1000} {
		elf = append(elf, word(v)...)
	}
	return base64.StdEncoding.EncodeToString(append(elf, code...))
}

// testConfinement attacks the host as root on a machine. On a machine that is not confined, the
// attacks succeed without harm.
func testConfinement(t *testing.T, f *fixture, id string) {
	f.run(id, fmt.Sprintf("mknod /tmp/disk b %s; mknod /tmp/memory c 1 1; mkdir -p /tmp/proc /tmp/sys && mount -t proc proc /tmp/proc && mount -t sysfs sysfs /tmp/sys", hostDisk(t)))
	if out := f.run(id, node.MachineProgram+" "+attackCommand); out != "" {
		t.Errorf("root on a machine gets\n%s", out)
	}
	f.testMappedUsers(id)
	if hierarchyV2() != "" && strings.Contains(f.console(id), "is not restricted") {
		t.Errorf("filters are missing; console:\n%s", f.console(id))
	}
	const same = `sh -c 'v=$(cat "$0") && echo "$v" > "$0"' `
	for _, tt := range []struct{ name, line, want string }{
		{"all processes, not only those that enter", "grep -q 'Seccomp:.2' /proc/1/status", "done"},
		{"a program for crashes", same + "/proc/sys/kernel/core_pattern", "denied"},
		{"a program for crashes, through another mount", same + "/tmp/proc/sys/kernel/core_pattern", "denied"},
		{"memory of the host, through another mount", same + "/tmp/proc/sys/vm/swappiness", "denied"},
		{"the machine's own network", same + "/proc/sys/net/ipv4/ip_forward", "done"},
		{"the machine's own queues, through another mount", same + "/tmp/proc/sys/kernel/msgmax", "done"},
		{"settings of devices", same + "/sys/module/printk/parameters/time", "denied"},
		{"magic keys", "f=/proc/sysrq-trigger; test ! -e $f || test $(stat -c %t:%T $f) = 1:3", "done"},
		{"the memory of the kernel", "f=/proc/kcore; test ! -e $f || test $(stat -c %t:%T $f) = 1:3", "done"},
		{"the program of the host", "chmod 755 " + node.MachineProgram, "denied"},
		{"devices that it needs", "cat /dev/null && head -c 1 /dev/urandom && echo > /dev/full || test $? = 1", "done"},
	} {
		if out, _ := f.try(id, "{ "+tt.line+"; } >/dev/null 2>&1 && echo done || echo denied"); out != tt.want {
			t.Errorf("%s: %q is %s, want %s", tt.name, tt.line, out, tt.want)
		}
	}
	if runtime.GOARCH == "amd64" {
		line := "echo " + program32() + " | base64 -d > /tmp/abi && chmod +x /tmp/abi && (/tmp/abi; echo $?) 2>/dev/null"
		if out := f.run(id, line); out == "42" {
			t.Error("system calls of the 32-bit ABI are not restricted")
		}
	}
	t.Run("it can't lift its limits", func(t *testing.T) { testLimitsStay(t, f, id) })
}

// testMappedUsers attacks what only a user namespace protects. Files are opened, but not written.
func (f *fixture) testMappedUsers(id string) {
	f.t.Helper()
	mapped := f.run(id, "awk '{print $2}' /proc/self/uid_map") != "0"
	if want := !f.hostUsers && canMapUsers(f.t, f.home); mapped != want {
		f.t.Errorf("users of the machine are mapped: %t, want %t", mapped, want)
	}
	if !mapped {
		return
	}
	for _, line := range []string{
		": > /tmp/proc/sysrq-trigger", ": > /tmp/sys/module/printk/parameters/time", "mount -t debugfs none /tmp/sys", "mount -t tracefs none /tmp/sys",
		"mount -o remount,bind,rw " + node.MachineProgram, "umount " + node.MachineProgram, "mknod /tmp/null c 1 3",
	} {
		if _, err := f.try(id, line); err == nil {
			f.t.Errorf("root of a user namespace can do: %s", line)
		}
	}
}

// canMapUsers reports whether this host can map users in a directory, without the code under test.
func canMapUsers(t *testing.T, dir string) bool {
	t.Helper()
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		t.Fatal(err)
	}
	release, err := version.ParseGeneric(unix.ByteSliceToString(name.Release[:]))
	if err != nil {
		t.Fatal(err)
	}
	one := []syscall.SysProcIDMap{{HostID: 100000, Size: 65536}}
	cmd := exec.CommandContext(t.Context(), "sleep", "600")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER, UidMappings: one, GidMappings: one}
	if cmd.Start() != nil {
		return false
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	users, err := os.Open(fmt.Sprintf("/proc/%d/ns/user", cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	defer users.Close()
	tree, err := unix.OpenTree(unix.AT_FDCWD, dir, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return false
	}
	defer unix.Close(tree)
	err = unix.MountSetattr(tree, "", unix.AT_EMPTY_PATH, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_IDMAP, Userns_fd: uint64(users.Fd())})
	return err == nil && release.AtLeast(version.MustParseGeneric("5.19"))
}

// testLimitsStay writes limits inside the machine, which must not be those that the driver set.
func testLimitsStay(t *testing.T, f *fixture, id string) {
	f.run(id, `for f in /sys/fs/cgroup/memory/memory.limit_in_bytes /sys/fs/cgroup/memory.max; do test -e $f && echo $((64 << 30)) > $f; done; true`)
	dirs, err := hierarchies()
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range dirs {
		for _, file := range []string{"memory.limit_in_bytes", "memory.max"} {
			data, err := os.ReadFile(dir + "/" + f.cgroupName() + "/" + id + "/" + file)
			if err != nil {
				continue
			}
			if limit, err := strconv.Atoi(strings.TrimSpace(string(data))); err != nil || limit != 2<<30 {
				t.Errorf("the limit is %q (%v)", data, err)
			}
		}
	}
}

// hostDisk returns the numbers of a block device of the host.
func hostDisk(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile("/proc/partitions")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		if fields := strings.Fields(line); len(fields) == 4 && fields[0] != "major" {
			return fields[0] + " " + fields[1]
		}
	}
	return "7 0"
}
