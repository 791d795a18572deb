package guest

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// writeUnits creates a root directory with these unit files.
func writeUnits(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, content := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestLoadUnit(t *testing.T) {
	root := writeUnits(t, map[string]string{
		"usr/lib/systemd/system/a.service":              "[Unit]\nDescription=A\nConditionPathExists=/x\n[Service]\nExecStart=/bin/old\nRestartSec=500ms\nRestart=always\nPrivateTmp=yes\n",
		"usr/lib/systemd/system/a.service.d/10-x.conf":  "[Service]\nEnvironment=\"A=1 2\" B=3%%\nExecStart=\nExecStart=/bin/new $A \\\n  ${B}\n",
		"usr/lib/systemd/system/a.service.d/20-y.conf":  "[Service]\nUser=hidden\n",
		"etc/systemd/system/a.service.d/20-y.conf":      "[Service]\nUser=developer\n",
		"etc/systemd/system/b.service":                  "[Service]\nExecStart=/bin/etc\n",
		"usr/lib/systemd/system/b.service":              "[Service]\nExecStart=/bin/usr\n",
		"etc/systemd/system/broken.service":             "[Service]\nnonsense\n",
		"etc/systemd/system/multi-user.target.wants/no": "",
	})
	a, err := loadUnit(root, "a")
	if err != nil {
		t.Fatal(err)
	}
	want := &unit{
		name: "a.service", path: filepath.Join(root, "usr/lib/systemd/system/a.service"), description: "A", kind: "simple", conditions: []string{"/x"},
		env: []string{"A=1 2", "B=3%"}, start: []string{"/bin/new $A    ${B}"}, restart: "always", restartDelay: 500 * time.Millisecond, user: "developer",
		ignored: []string{"Service.PrivateTmp"},
	}
	if diff := cmp.Diff(want, a, cmp.AllowUnexported(unit{})); diff != "" {
		t.Errorf("unit (-want +got):\n%s", diff)
	}
	b, err := loadUnit(root, "b.service")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"/bin/etc"}, b.start); diff != "" {
		t.Errorf("a unit of the administrator does not win (-want +got):\n%s", diff)
	}
	for _, name := range []string{"broken", "missing"} {
		if _, err := loadUnit(root, name); err == nil {
			t.Errorf("unit %q is loaded", name)
		}
	}
}

func TestArgv(t *testing.T) {
	env := []string{"ARGS=--a --b='c d'", "ONE=x y", "ARGS2="}
	for line, want := range map[string][]string{
		"/bin/x $ARGS":             {"/bin/x", "--a", "--b=c d"},
		"/bin/x ${ONE} pre${ONE}":  {"/bin/x", "x y", "prex y"},
		"/bin/x $ARGS2 $MISSING z": {"/bin/x", "z"},
		`/bin/sh -c "echo '$ONE'"`: {"/bin/sh", "-c", "echo '$ONE'"},
		"-/bin/x":                  {"/bin/x"},
	} {
		got, mayFail := argv(line, env)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", line, diff)
		}
		if mayFail != (line[0] == '-') {
			t.Errorf("%s: may fail: %t", line, mayFail)
		}
	}
}

func TestRestartPolicy(t *testing.T) {
	for _, tt := range []struct {
		restart, kind string
		ok, want      bool
	}{
		{"always", "simple", true, true},
		{"on-failure", "simple", true, false},
		{"on-failure", "notify", false, true},
		{"no", "simple", false, false},
		{"always", "oneshot", false, false},
	} {
		if got := (&unit{restart: tt.restart, kind: tt.kind}).restarts(tt.ok); got != tt.want {
			t.Errorf("Restart=%s, Type=%s, ended well: %t: started again: %t", tt.restart, tt.kind, tt.ok, got)
		}
	}
}
