package guest

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/drover-dev/drover/internal/kube/node"
)

// TestHostFollowsNoLinksOfAMachine boots a machine on which root has replaced directories and files
// that the host uses.
func TestHostFollowsNoLinksOfAMachine(t *testing.T) {
	for name, attack := range map[string]func(upper, outside string) error{
		"a directory": func(upper, outside string) error { return os.Symlink(outside, filepath.Join(upper, "usr")) },
		"a directory by a relative path": func(upper, _ string) error {
			return os.Symlink("../../outside", filepath.Join(upper, "usr"))
		},
		"the program": func(upper, outside string) error {
			program := filepath.Join(upper, node.MachineProgram)
			if err := os.MkdirAll(filepath.Dir(program), 0o700); err != nil {
				return err
			}
			return os.Symlink(filepath.Join(outside, "created"), program)
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			r, outside := Root{Spec: Spec{Dir: filepath.Join(dir, "machine")}}, filepath.Join(dir, "outside")
			upper := filepath.Join(r.Dir, "upper")
			for _, d := range []string{upper, outside} {
				if err := os.MkdirAll(d, 0o700); err != nil {
					t.Fatal(err)
				}
			}
			if err := attack(upper, outside); err != nil {
				t.Fatal(err)
			}
			_ = r.mountpoints() // It may fail, but only on the machine.
			entries, err := os.ReadDir(outside)
			if err != nil || len(entries) > 0 {
				t.Errorf("the host created %v (%v)", entries, err)
			}
			if info, err := os.Stat(outside); err != nil || info.Mode().Perm() != 0o700 {
				t.Errorf("the host changed the mode: %v (%v)", info.Mode(), err)
			}
		})
	}
}

func TestMountpointsAreCreatedOnce(t *testing.T) {
	r := Root{Spec: Spec{Dir: t.TempDir()}}
	upper := filepath.Join(r.Dir, "upper")
	if err := os.Mkdir(upper, 0o755); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := r.mountpoints(); err != nil {
			t.Fatal(err)
		}
	}
	// Opening a pipe for writing would wait for a reader.
	program := filepath.Join(upper, node.MachineProgram)
	if err := os.Remove(program); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mkfifo(program, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := r.mountpoints(); err != nil {
		t.Error(err)
	}
}

// TestMountsStayInTheRoot mounts on a link that root on a machine created, in a mount namespace of
// its own.
func TestMountsStayInTheRoot(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("mounting needs root")
	}
	runtime.LockOSThread() // Never unlocked: the thread ends with the test.
	if err := unix.Unshare(unix.CLONE_FS | unix.CLONE_NEWNS); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	root, outside := filepath.Join(dir, "root"), filepath.Join(dir, "outside")
	for _, d := range []string{filepath.Join(root, "inside"), outside} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for link, target := range map[string]string{"proc": outside, "dev": "../outside"} {
		if err := os.Symlink(target, filepath.Join(root, link)); err != nil {
			t.Fatal(err)
		}
	}
	for path, mounts := range map[string]bool{"/proc": false, "/dev": false, "/inside": true} {
		err := mount{source: "tmpfs", target: path, kind: "tmpfs"}.do(root)
		if (err == nil) != mounts {
			t.Errorf("mounting on %q: %v", path, err)
		}
	}
	data, err := os.ReadFile("/proc/thread-self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(data), " "+outside+" ") || !strings.Contains(string(data), " "+filepath.Join(root, "inside")+" ") {
		t.Errorf("mounts:\n%s", data)
	}
	if err := unix.Unmount(filepath.Join(root, "inside"), 0); err != nil {
		t.Error(err)
	}
}
