package sandbox

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/vishvananda/netlink"
)

// TestMain lets the test binary act as the -exec program of the go command.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "sandbox" {
		os.Exit(Run(Options{Args: os.Args[2:], Grace: time.Second, Out: os.Stdout}))
	}
	os.Exit(m.Run())
}

// module creates a module with one test.
func module(t *testing.T, body string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module example.test\n",
		"x_test.go": fmt.Sprintf("package x\n\nimport (\n\"os\"\n\"os/exec\"\n\"testing\"\n)\n\n"+
			"var _, _ = os.Getpid, exec.Command\n\nfunc TestX(t *testing.T) {\n%s\n}\n\nfunc TestY(*testing.T) {}\n", body),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func goTest(t *testing.T, dir string) (string, error) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("go", "test", "-v", "-vet=off", "-exec", self+" sandbox", ".")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func TestRunReportsLeakedResources(t *testing.T) {
	for name, c := range map[string]struct{ body, want string }{
		"a file":                {`os.WriteFile(os.TempDir()+"/home", nil, 0o600)`, "--- LEAK: file "},
		"a process":             {`exec.Command("sleep", "987").Start()`, ": sleep 987"},
		"a process of a child":  {`exec.Command("sh", "-c", "sleep 986 & exit").Run()`, ": sleep 986"},
		"nothing but a failure": {`t.Error("no")`, "--- FAIL: TestX"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // waits for processes to exit
			out, err := goTest(t, module(t, c.body))
			if err == nil || !strings.Contains(out, c.want) {
				t.Errorf("want a failure that contains %q, got %v:\n%s", c.want, err, out)
			}
		})
	}
}

func TestRunKeepsResultsCachedAndShufflesTests(t *testing.T) {
	dir := module(t, "exec.Command(\"sh\", \"-c\", \"i=0; while [ $i -lt 99999 ]; do i=$((i+1)); done\").Run()")
	first, err := goTest(t, dir)
	if err != nil || !strings.Contains(first, "-test.shuffle ") || strings.Contains(first, "(cached)") {
		t.Fatalf("want a shuffled run, got %v:\n%s", err, first)
	}
	second, err := goTest(t, dir)
	if err != nil || !strings.Contains(second, "(cached)") {
		t.Errorf("want a cached result, got %v:\n%s", err, second)
	}
	for _, prefix := range []string{"-test.shuffle ", CPU} {
		if lineWith(prefix, first) != lineWith(prefix, second) {
			t.Errorf("a cached result differs: %q, then %q", lineWith(prefix, first), lineWith(prefix, second))
		}
	}
	if used, err := time.ParseDuration(strings.TrimSpace(strings.TrimPrefix(lineWith(CPU, first), CPU))); err != nil || used < 10*time.Millisecond {
		t.Errorf("%v: want the CPU time of a busy child, got %s", err, used)
	}
}

func lineWith(prefix, out string) string {
	for line := range strings.Lines(out) {
		if strings.HasPrefix(line, prefix) {
			return line
		}
	}
	return ""
}

func TestParseStat(t *testing.T) {
	for name, c := range map[string]struct {
		line      string
		pid, ppid int
		ok        bool
	}{
		"a plain name":                   {"12 (drover) S 3 12 12", 12, 3, true},
		"a name with ) and spaces in it": {"12 (a) b) S 3 12 12", 12, 3, true},
		"nothing":                        {"", 0, 0, false},
		"no parent":                      {"12 (a) S", 0, 0, false},
		"a parent that is no number":     {"12 (a) S x", 12, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			if pid, ppid, ok := parseStat(c.line); pid != c.pid || ppid != c.ppid || ok != c.ok {
				t.Errorf("got %d %d %t, want %d %d %t", pid, ppid, ok, c.pid, c.ppid, c.ok)
			}
		})
	}
}

func TestMountsBelow(t *testing.T) {
	info := "22 1 8:1 / / rw - ext4 /dev/a rw\n23 22 0:4 / /tmp/t1/a rw - tmpfs none rw\n" +
		"24 23 0:5 / /tmp/t1/a/b rw - tmpfs none rw\n25 22 0:6 / /tmp/t12 rw - tmpfs none rw\n"
	if diff := cmp.Diff([]string{"/tmp/t1/a", "/tmp/t1/a/b"}, mountsBelow(info, "/tmp/t1")); diff != "" {
		t.Errorf("mount points (-want +got):\n%s", diff)
	}
}

func TestKernelSince(t *testing.T) {
	root := t.TempDir()
	before := kernelAt(root)
	for _, dir := range []string{
		"sys/class/net/drv0123abcd", "sys/class/net/drvffffffff/brif/v1", "sys/class/net/eth0", "sys/class/net/v0123abcd012345",
		"sys/class/net/drv00000001", "sys/class/net/v00000001012345", "tmp/alive/driver-local",
		"sys/fs/cgroup/drover-0123abcd", "sys/fs/cgroup/system.slice", "sys/fs/cgroup/cpu/drover-4567abcd", "sys/fs/cgroup/cpu/drover-89ababcd/machine", "run/netns/mine",
	} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for file, content := range map[string]string{
		"sys/fs/cgroup/cpu/drover-89ababcd/machine/cgroup.procs": "7\n",
		"sys/class/net/drv0123abcd/ifalias":                      "drover mnt:[4026531840] /tmp/a home/driver-local\n",
		"sys/class/net/drv00000001/ifalias":                      "drover mnt:[4026531840] /tmp/alive/driver-local\n",
	} {
		if err := os.WriteFile(filepath.Join(root, file), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{
		"cgroup drover-0123abcd", "cgroup drover-4567abcd", "link drv0123abcd of /tmp/a home/driver-local", "link v0123abcd012345", "network namespace mine",
	}
	after := kernelAt(root)
	if diff := cmp.Diff(want, after.Since(before)); diff != "" {
		t.Errorf("leftovers (-want +got):\n%s", diff)
	}
	if left := after.Since(after); len(left) > 0 {
		t.Errorf("got leftovers %v, want none: all of them existed before", left)
	}
	if err := os.Remove(filepath.Join(root, "sys/class/net/drvffffffff/brif/v1")); err != nil {
		t.Fatal(err)
	}
	if left := kernelAt(root).Since(after); len(left) > 0 {
		t.Errorf("got leftovers %v, want none: the bridge existed before, with a machine", left)
	}
}

func TestBridgesOfATemporaryDirectoryAreNamedAndRemoved(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("creating a bridge requires root")
	}
	attrs := netlink.NewLinkAttrs()
	attrs.Name = fmt.Sprintf("drv%08x", os.Getpid())
	bridge := &netlink.Bridge{LinkAttrs: attrs}
	if err := netlink.LinkAdd(bridge); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = netlink.LinkDel(bridge) }) // it should be gone
	temp := t.TempDir()
	if err := netlink.LinkSetAlias(bridge, "drover mnt:[1] "+temp+"/home"); err != nil {
		t.Fatal(err)
	}
	if left := bridges(temp + "-other"); len(left) > 0 {
		t.Errorf("got bridges %v of another directory", left)
	}
	if diff := cmp.Diff([]string{"bridge " + attrs.Name + " of " + temp + "/home"}, bridges(temp)); diff != "" {
		t.Errorf("bridges (-want +got):\n%s", diff)
	}
	if left := bridges(temp); len(left) > 0 {
		t.Errorf("got bridges %v, want them removed", left)
	}
}
