package guest

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/drover-dev/drover/internal/metal/userdata"
)

func TestFileModeKeepsSpecialBits(t *testing.T) {
	for in, want := range map[fs.FileMode]fs.FileMode{
		0:      0,
		0o644:  0o644,
		0o4755: fs.ModeSetuid | 0o755,
		0o2750: fs.ModeSetgid | 0o750,
		0o1777: fs.ModeSticky | 0o777,
		0o7777: fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky | 0o777,
	} {
		if got := fileMode(in); got != want {
			t.Errorf("mode %#o becomes %v, want %v", uint32(in), got, want)
		}
	}
}

func TestOwner(t *testing.T) {
	for name, want := range map[string][2]int{"": {0, 0}, "root": {0, 0}, "root:": {0, 0}, "root:root": {0, 0}} {
		uid, gid, err := owner(name)
		if err != nil || uid != want[0] || gid != want[1] {
			t.Errorf("owner %q is %d:%d (error %v), want %v", name, uid, gid, err, want)
		}
	}
	for _, name := range []string{"no-such-user", "root:no-such-group", ":root", "ünïcode"} {
		if _, _, err := owner(name); err == nil {
			t.Errorf("owner %q is accepted", name)
		}
	}
}

func TestPutFile(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give files to root")
	}
	path := filepath.Join(t.TempDir(), "new", "directory", "file")
	for _, step := range []struct {
		name string
		file userdata.File
		want string
		mode fs.FileMode
	}{
		{"a new file in a new directory", userdata.File{Content: []byte("one"), Mode: 0o640}, "one", 0o640},
		{"an existing file is replaced, with its mode", userdata.File{Content: []byte("2"), Mode: 0o600}, "2", 0o600},
		{"or extended", userdata.File{Content: []byte("3"), Mode: 0o600, Append: true}, "23", 0o600},
		{"special bits survive", userdata.File{Mode: 0o4711, Owner: "root:root"}, "", fs.ModeSetuid | 0o711},
	} {
		step.file.Path = path
		if err := putFile(step.file); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		content, err := os.ReadFile(path)
		if err != nil || string(content) != step.want {
			t.Errorf("%s: content %q (error %v), want %q", step.name, content, err, step.want)
		}
		if info, err := os.Stat(path); err != nil || info.Mode() != step.mode {
			t.Errorf("%s: mode %v (error %v), want %v", step.name, info.Mode(), err, step.mode)
		}
	}
	err := writeFiles(userdata.Plan{Files: []userdata.File{{Path: filepath.Join(path, "below-a-file")}}})
	if err == nil || !strings.Contains(err.Error(), `below-a-file"`) {
		t.Errorf("error %v does not name the file", err)
	}
}

func TestDeferredFilesAreWrittenLater(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give files to root")
	}
	dir := t.TempDir()
	early, late := filepath.Join(dir, "early"), filepath.Join(dir, "late")
	plan := userdata.Plan{Files: []userdata.File{{Path: late, Deferred: true}, {Path: early}}}
	if err := writeFiles(plan); err != nil {
		t.Fatal(err)
	}
	if !exists(early) || exists(late) {
		t.Errorf("at first, early exists: %t, late exists: %t", exists(early), exists(late))
	}
	if err := writeDeferredFiles(plan); err != nil {
		t.Fatal(err)
	}
	if !exists(late) {
		t.Error("the deferred file was not written")
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func TestAccountLines(t *testing.T) {
	for name, tt := range map[string]struct {
		user                 userdata.User
		passwd, shadow, sudo string
	}{
		"the shell and the password have defaults": {
			user:   userdata.User{Name: "ops", Home: "/home/ops", Sudo: "ALL=(ALL) NOPASSWD:ALL"},
			passwd: "ops:x:1000:1001::/home/ops:/bin/bash",
			shadow: "ops:*:20000:0:99999:7:::",
			sudo:   "ops ALL=(ALL) NOPASSWD:ALL",
		},
		"values are kept": {
			user:   userdata.User{Name: "ops", Comment: "Operators, Ünit 7", Home: "/srv/ops", Shell: "/bin/sh", Password: "$6$salt$hash", Sudo: "ALL=/bin/a\nALL=/bin/b"},
			passwd: "ops:x:1000:1001:Operators, Ünit 7:/srv/ops:/bin/sh",
			shadow: "ops:$6$salt$hash:20000:0:99999:7:::",
			sudo:   "ops ALL=/bin/a\nops ALL=/bin/b",
		},
	} {
		t.Run(name, func(t *testing.T) {
			want := []string{tt.passwd, tt.shadow, tt.sudo}
			if diff := cmp.Diff(want, []string{passwdLine(tt.user, 1000, 1001), shadowLine(tt.user), sudoLines(tt.user)}); diff != "" {
				t.Errorf("lines (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWithMember(t *testing.T) {
	const groups = "root:x:0:\nwheel:x:10:developer\nwheelers:x:11:\n"
	for name, tt := range map[string]struct{ group, member, want string }{
		"the first member":               {"root", "ops", "root:x:0:ops\nwheel:x:10:developer\nwheelers:x:11:\n"},
		"another member":                 {"wheel", "ops", "root:x:0:\nwheel:x:10:developer,ops\nwheelers:x:11:\n"},
		"a member is listed once":        {"wheel", "developer", groups},
		"a prefix is another group":      {"whee", "ops", groups},
		"a group that does not exist":    {"docker", "ops", groups},
		"a member that contains another": {"wheel", "ki", "root:x:0:\nwheel:x:10:developer,ki\nwheelers:x:11:\n"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := withMember(groups, tt.group, tt.member); got != tt.want {
				t.Errorf("groups:\n%s\nwant:\n%s", got, tt.want)
			}
		})
	}
	if got := withMember("", "g", "m"); got != "" {
		t.Errorf("an empty file becomes %q", got)
	}
}

func TestUnusedID(t *testing.T) {
	for name, tt := range map[string]struct {
		entries string
		want    int
	}{
		"an empty file":                   {"", 1000},
		"system accounts do not count":    {"root:x:0:0::/root:/bin/sh\nnobody:x:65534:\n", 1000},
		"the first gap":                   {"a:x:1000:\nb:x:1002:\n", 1001},
		"after a run":                     {"a:x:1001:\nb:x:1000:\nc:x:1002:", 1003},
		"lines that can't be read":        {"garbage\n::\na:x:many:\n", 1000},
		"comments and blank lines":        {"# a:x:1001:\n\nb:x:1000:\n", 1002},
		"a number of the same first part": {"a:x:10000:\n", 1000},
	} {
		if got := unusedID(tt.entries); got != tt.want {
			t.Errorf("%s: got %d, want %d", name, got, tt.want)
		}
	}
	if got := freeID(filepath.Join(t.TempDir(), "missing")); got != 1000 {
		t.Errorf("without a file: got %d, want 1000", got)
	}
}

func TestMissingKeys(t *testing.T) {
	const have = "ssh-ed25519 AAAA developer@laptop\n"
	for name, tt := range map[string]struct{ keys, want []string }{
		"none":                              {nil, nil},
		"blank ones":                        {[]string{"", " \n"}, nil},
		"one that is there":                 {[]string{"ssh-ed25519 AAAA developer@laptop"}, nil},
		"one that is there without comment": {[]string{"ssh-ed25519 AAAA"}, nil},
		"a new one, trimmed":                {[]string{" ssh-ed25519 BBBB\n"}, []string{"ssh-ed25519 BBBB"}},
		"a new one that is given twice":     {[]string{"ssh-rsa C", "ssh-rsa D", "ssh-rsa C\n"}, []string{"ssh-rsa C", "ssh-rsa D"}},
	} {
		if diff := cmp.Diff(tt.want, missingKeys(have, tt.keys)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestAuthorizeIsIdempotent(t *testing.T) {
	home := t.TempDir()
	uid, gid := os.Getuid(), os.Getgid()
	if err := authorize(home, nil, uid, gid); err != nil || exists(filepath.Join(home, ".ssh")) {
		t.Errorf("without keys a directory is created, or it fails: %v", err)
	}
	for range 2 {
		if err := authorize(home, []string{"ssh-rsa A", "ssh-rsa B", "ssh-rsa A"}, uid, gid); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(home, ".ssh", "authorized_keys")
	if data, err := os.ReadFile(file); err != nil || string(data) != "ssh-rsa A\nssh-rsa B\n" {
		t.Errorf("keys %q, error %v", data, err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode() != 0o600 {
		t.Errorf("others can read the keys: %v, error %v", info.Mode(), err)
	}
}

func TestMountCall(t *testing.T) {
	for name, tt := range map[string]struct {
		in   userdata.Mount
		want mount
	}{
		"a directory": {
			userdata.Mount{Source: "/srv/a", Target: "/mnt/a", Options: "bind"},
			mount{source: "/srv/a", target: "/mnt/a", flags: unix.MS_BIND},
		},
		"a file system with a label": {
			userdata.Mount{Source: "LABEL=etcd", Target: "/var/lib/etcddisk"},
			mount{source: disksDir + "/etcd", target: "/var/lib/etcddisk", flags: unix.MS_BIND},
		},
		"a label stays below its directory": {
			userdata.Mount{Source: "LABEL=../../../etc", Target: "/mnt"},
			mount{source: disksDir + "/etc", target: "/mnt", flags: unix.MS_BIND},
		},
		"memory by its source": {
			userdata.Mount{Source: "tmpfs", Target: "/cache"},
			mount{source: "tmpfs", target: "/cache", kind: "tmpfs"},
		},
		"memory by its kind": {
			userdata.Mount{Source: "none", Target: "/cache", Kind: "tmpfs"},
			mount{source: "none", target: "/cache", kind: "tmpfs"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, mountCall(tt.in), cmp.AllowUnexported(mount{})); diff != "" {
				t.Errorf("call (-want +got):\n%s", diff)
			}
		})
	}
}
