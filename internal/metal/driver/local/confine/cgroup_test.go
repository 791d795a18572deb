package confine

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// newCgroup creates a cgroup v2 and removes it with the test.
func newCgroup(t *testing.T) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("cgroups need root")
	}
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(mounts)) {
		if fields := strings.Fields(line); len(fields) > 2 && fields[2] == "cgroup2" {
			dir, err := os.MkdirTemp(fields[1], "drover-confine-") //nolint:usetesting // on another file system
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := os.Remove(dir); err != nil {
					t.Error(err)
				}
			})
			return dir
		}
	}
	t.Skip("cgroup v2 is not mounted")
	return ""
}

// TestCgroupFilters runs commands in a cgroup below one that is confined. Each writes only the
// value that is there.
func TestCgroupFilters(t *testing.T) {
	dir := newCgroup(t)
	if err := Cgroup(dir); err != nil {
		t.Fatal(err)
	}
	inner := filepath.Join(dir, "inner")
	if err := os.Mkdir(inner, 0o755); err != nil {
		t.Fatal(err)
	}
	defer os.Remove(inner)
	disk := filepath.Join(t.TempDir(), "disk")
	if err := unix.Mknod(disk, unix.S_IFBLK|0o600, int(unix.Mkdev(7, 0))); err != nil {
		t.Fatal(err)
	}
	const same = `sh -c 'v=$(cat "$0") && echo "$v" > "$0"' /proc/sys/`
	for name, tt := range map[string]struct {
		line string
		ok   bool
	}{
		"null":                      {"echo > /dev/null", true},
		"random numbers":            {"head -c 1 /dev/urandom", true},
		"the log of the kernel":     {"true < /dev/kmsg", true},
		"writing to that log":       {"true >> /dev/kmsg", false},
		"a disk":                    {"true < " + disk, false},
		"creating a disk":           {"mknod " + disk + "2 b 7 1", true},
		"memory":                    {"mknod " + disk + "3 c 1 1 && true < " + disk + "3", false},
		"a console of the host":     {"true < /dev/console", false},
		"a program for crashes":     {same + "kernel/core_pattern", false},
		"reading it":                {"cat /proc/sys/kernel/core_pattern", true},
		"a program for modules":     {same + "kernel/modprobe", false},
		"swapping":                  {same + "vm/swappiness", false},
		"a longer name":             {same + "fs/inotify/max_user_instances", false},
		"queues of the namespace":   {same + "kernel/msgmax", true},
		"shared memory of it":       {same + "kernel/shm_rmid_forced", true},
		"the name of the machine":   {same + "kernel/hostname", true},
		"a setting of the network":  {same + "net/ipv4/ip_forward", true},
		"a long one of the network": {same + "net/ipv4/conf/default/accept_source_route", true},
	} {
		if err := runIn(t, inner, tt.line); (err == nil) != tt.ok {
			t.Errorf("%s: got %v, want success: %t", name, err, tt.ok)
		}
	}
}

// runIn runs a command in a cgroup, with namespaces of its own.
func runIn(t *testing.T, cgroup, line string) error {
	t.Helper()
	fd, err := unix.Open(cgroup, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	cmd := exec.CommandContext(t.Context(), "sh", "-c", line)
	cmd.SysProcAttr = &syscall.SysProcAttr{
		UseCgroupFD: true, CgroupFD: fd, Cloneflags: unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS,
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Logf("%s: %s", line, out)
	}
	return err
}

// confinedCommand makes the test binary confine itself and run a shell.
const confinedCommand = "confined"

func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == confinedCommand {
		runtime.LockOSThread()
		if err := Thread(); err != nil {
			panic(err)
		}
		panic(unix.Exec("/bin/sh", []string{"sh", "-c", os.Args[2]}, os.Environ()))
	}
	os.Exit(m.Run())
}

func TestThreadIsInherited(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("dropping capabilities needs root")
	}
	before, err := exec.Command("grep", "CapBnd", "/proc/self/status").Output()
	if err != nil {
		t.Fatal(err)
	}
	out, _ := exec.Command(os.Args[0], confinedCommand, "grep -E '^(CapPrm|CapBnd|Seccomp):' /proc/self/status").CombinedOutput()
	if got := string(out); !strings.Contains(got, "Seccomp:\t2") || strings.Contains(got, string(before)) {
		t.Errorf("a child has\n%s", got)
	}
}
