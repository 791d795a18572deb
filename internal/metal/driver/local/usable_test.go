package local

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/drover-dev/drover/internal/kube/node"
)

func TestUsableReportsMissingRequirements(t *testing.T) {
	home := t.TempDir()
	if os.Geteuid() != 0 {
		if err := Usable(home); err == nil || !strings.Contains(err.Error(), "need root") {
			t.Errorf("without root: %v", err)
		}
		return
	}
	t.Setenv(node.EnvDir, t.TempDir())
	if err := Usable(home); !node.IsMissing(err) {
		t.Errorf("without programs: %v", err)
	}
	merged := overlay(t)
	if err := Usable(filepath.Join(merged, "not", "made", "yet")); err == nil || !strings.Contains(err.Error(), "overlayfs") {
		t.Errorf("on overlayfs: %v", err)
	}
}

// overlay mounts an overlay during the test.
func overlay(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"lower", "upper", "work", "merged"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	merged := filepath.Join(dir, "merged")
	if err := unix.Mount("none", merged, "overlay", 0, "lowerdir="+dir+"/lower,upperdir="+dir+"/upper,workdir="+dir+"/work"); err != nil {
		t.Skip("this host mounts no overlay: ", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(merged, 0); err != nil {
			t.Error(err)
		}
	})
	return merged
}

func TestKernelProbesLeaveNothing(t *testing.T) {
	if err := isRoot(); err != nil {
		t.Skip(err)
	}
	before, mounts := links(t), mountinfo(t)
	if err := kernelHas(features()); err != nil {
		t.Fatal(err)
	}
	if after := links(t); after != before || mountinfo(t) != mounts {
		t.Errorf("got links %q before and %q after, or changed mounts", before, after)
	}
	lacking := []feature{{"bridges", "true"}, {"time travel", "echo not in this universe >&2; false"}}
	if err := kernelHas(lacking); err == nil || !strings.Contains(err.Error(), "need time travel, which the kernel of this host does not have: not in this universe") {
		t.Errorf("got error %v, want one that contains %q", err, "need time travel, which the kernel of this host does not have: not in this universe")
	}
}

func TestBridgesOfTheHostStayUnfiltered(t *testing.T) {
	for name, tt := range map[string]struct {
		loaded bool
		want   string
	}{"the module is loaded now": {false, "0"}, "the host has loaded it": {true, "1"}} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "bridge")
			file := filepath.Join(dir, "bridge-nf-call-iptables")
			load := func() {
				if err := errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(file, []byte("1"), 0o600)); err != nil {
					t.Fatal(err)
				}
			}
			if tt.loaded {
				load()
			}
			if err := keepBridgesUnfiltered(dir, load); err != nil {
				t.Fatal(err)
			}
			if got, err := os.ReadFile(file); err != nil || string(got) != tt.want {
				t.Errorf("the setting is %q, want %q (%v)", got, tt.want, err)
			}
		})
	}
	if err := keepBridgesUnfiltered(filepath.Join(t.TempDir(), "none"), func() {}); err != nil {
		t.Errorf("without the module: %v", err)
	}
}

// links returns the links that this package names; others may change.
func links(t *testing.T) string {
	t.Helper()
	all, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, i := range all {
		if strings.HasPrefix(i.Name, "bridge") || strings.HasPrefix(i.Name, "veth") {
			out = append(out, i.Name)
		}
	}
	return strings.Join(out, " ")
}

// mountinfo lists the mounts that a probe could leak, without those of other tests below temporary
// directories.
func mountinfo(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for line := range strings.Lines(string(data)) {
		if point := strings.Fields(line)[4]; !strings.HasPrefix(point, "/tmp/") || point == "/tmp/m" {
			out = append(out, line)
		}
	}
	return strings.Join(out, "")
}
