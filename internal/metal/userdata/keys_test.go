package userdata

import (
	"io/fs"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// planOf parses a cloud-config.
func planOf(t *testing.T, config string) (Plan, error) {
	t.Helper()
	return Parse([]byte("#cloud-config\n"+config), nil)
}

func TestCommandsAreLinesOrWords(t *testing.T) {
	for name, tt := range map[string]struct {
		config string
		want   []Command
		err    string
	}{
		"a line":               {"runcmd: ls -l", []Command{{Line: "ls -l"}}, ""},
		"lines and words":      {"runcmd: [ls, [echo, 1, true, 'a b'], ~, []]", []Command{{Line: "ls"}, {Words: []string{"echo", "1", "true", "a b"}}}, ""},
		"an alias":             {"x: &a [ls, -l]\nruncmd: [*a]", []Command{{Words: []string{"ls", "-l"}}}, ""},
		"nothing":              {"runcmd: ~", nil, ""},
		"a map":                {"runcmd: {a: b}", nil, "not a list"},
		"a line with a colon":  {"runcmd:\n- echo a: b", nil, "quote it if it contains a colon"},
		"words that are lists": {"runcmd: [[a, [b]]]", nil, "a word of a command is not a string"},
	} {
		t.Run(name, func(t *testing.T) {
			plan, err := planOf(t, tt.config)
			if (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Fatalf("error %v, want %q", err, tt.err)
			}
			if diff := cmp.Diff(tt.want, plan.Commands); diff != "" {
				t.Errorf("commands (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPermissionsAreOctal(t *testing.T) {
	for text, want := range map[string]fs.FileMode{"0644": 0o644, "'0755'": 0o755, "0o600": 0o600, "'4755'": 0o4755, "0": 0} {
		plan, err := planOf(t, "write_files: [{path: /a, permissions: "+text+"}]")
		if err != nil || len(plan.Files) != 1 || plan.Files[0].Mode != want {
			t.Errorf("%s: files %+v, error %v; want mode %o", text, plan.Files, err, want)
		}
	}
	for _, text := range []string{"rw-r--r--", "0999", "'77777'", "-1", "''"} {
		if _, err := planOf(t, "write_files: [{path: /a, permissions: "+text+"}]"); err == nil || !strings.Contains(err.Error(), "not an octal number") {
			t.Errorf("%s: got error %v, want one that contains %q", text, err, "not an octal number")
		}
	}
	if plan, err := planOf(t, "write_files: [{path: /a}]"); err != nil || plan.Files[0].Mode != defaultMode {
		t.Errorf("files %+v without permissions, error %v", plan.Files, err)
	}
}

func TestFilesHaveAbsolutePaths(t *testing.T) {
	plan, err := planOf(t, "write_files: [{path: /a/../b, content: eA==, encoding: b64, owner: 'kim:kim', append: true, defer: true}]")
	want := []File{{Path: "/b", Content: []byte("x"), Mode: defaultMode, Owner: "kim:kim", Append: true, Deferred: true}}
	if diff := cmp.Diff(want, plan.Files); diff != "" || err != nil {
		t.Errorf("files, error %v (-want +got):\n%s", err, diff)
	}
	for config, want := range map[string]string{
		"write_files: [{path: /a}, {path: b}]":                       `entry 2: path "b" is not absolute`,
		"write_files: [{path: /a, content: '%', encoding: b64}]":     `content of "/a"`,
		"write_files: [{path: /a, content: x, encoding: rot13}]":     `unknown encoding "rot13"`,
		"write_files: [{path: /a, content: eA==, encoding: gz+b64}]": `content of "/a"`,
		"write_files: {path: /a}":                                    "cannot unmarshal",
	} {
		if _, err := planOf(t, config); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", config, err, want)
		}
	}
}

func TestAccounts(t *testing.T) {
	plan, err := planOf(t, `
users:
- default
- ops
- name: kim
  gecos: Kim
  groups: wheel, docker
  sudo: ["ALL=(ALL) NOPASSWD:ALL", "ALL=/bin/ls"]
  ssh_authorized_keys: [a]
  ssh-authorized-keys: [b]
  lock_passwd: true
  shoe_size: 44
- {name: root, ssh_authorized_keys: [r]}
- {name: guest, groups: [users], sudo: false, no_create_home: true, uid: 2000}
groups: [admins, {cloud: [kim]}]
`)
	if err != nil {
		t.Fatal(err)
	}
	want := []User{
		{Name: "ops"},
		{Name: "kim", Comment: "Kim", Groups: []string{"wheel", "docker"}, Sudo: "ALL=(ALL) NOPASSWD:ALL\nALL=/bin/ls", Keys: []string{"a", "b"}},
		{Name: "guest", Groups: []string{"users"}, NoHome: true, UID: 2000},
	}
	if diff := cmp.Diff(want, plan.Users); diff != "" {
		t.Errorf("users (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"r"}, plan.RootKeys); diff != "" {
		t.Errorf("keys of root (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"admins", "cloud"}, plan.Groups); diff != "" {
		t.Errorf("groups (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]Note{{"users.kim.shoe_size", "skipped: unknown key"}}, plan.Notes); diff != "" {
		t.Errorf("notes (-want +got):\n%s", diff)
	}
	for config, want := range map[string]string{"users: [{gecos: nobody}]": "the user has no name", "users: {name: developer}": "not a list"} {
		if _, err := planOf(t, config); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", config, err, want)
		}
	}
}

func TestMountsOfALocalMachine(t *testing.T) {
	plan, err := planOf(t, `
fs_setup: [{label: etcd_disk}, {filesystem: ext4}, {label: a/b}]
mounts:
- [LABEL=etcd_disk, /var/lib/etcddisk]
- [tmpfs, /cache, tmpfs, size=1g]
- [/srv, /mnt, none, "defaults,bind"]
- [/dev/sda1, /data]
- [swap]
- [ephemeral0, none]
`)
	if err != nil {
		t.Fatal(err)
	}
	var targets, notes []string
	for _, m := range plan.Mounts {
		targets = append(targets, m.Target)
	}
	for _, n := range plan.Notes {
		notes = append(notes, n.Key)
	}
	if diff := cmp.Diff([]string{"/var/lib/etcddisk", "/cache", "/mnt"}, targets); diff != "" {
		t.Errorf("mounts (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]Disk{{Label: "etcd_disk"}}, plan.Disks); diff != "" {
		t.Errorf("disks (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"fs_setup", "fs_setup", "mounts"}, notes); diff != "" {
		t.Errorf("notes (-want +got):\n%s", diff)
	}
}

func TestPowerState(t *testing.T) {
	for mode, want := range map[string]Power{"reboot": "reboot", "poweroff": "poweroff", "halt": "poweroff"} {
		if plan, err := planOf(t, "power_state: {mode: "+mode+"}"); err != nil || plan.Power != want {
			t.Errorf("%s: %q, error %v", mode, plan.Power, err)
		}
	}
	if _, err := planOf(t, "power_state: {mode: sleep}"); err == nil || !strings.Contains(err.Error(), `unknown mode "sleep": use poweroff or reboot`) {
		t.Errorf("got error %v, want one that contains %q", err, `unknown mode "sleep": use poweroff or reboot`)
	}
}

func TestHostnameComesFromTheFullNameIfNeeded(t *testing.T) {
	for config, want := range map[string]string{
		"hostname: a\nfqdn: b.example.com": "a", "fqdn: b.example.com": "b", "fqdn: b": "b", "timezone: Europe/Berlin": "",
	} {
		if plan, err := planOf(t, config); err != nil || plan.Hostname != want {
			t.Errorf("%s: %q, error %v; want %q", config, plan.Hostname, err, want)
		}
	}
}

func TestKeysWithoutEffectAreNoted(t *testing.T) {
	plan, err := planOf(t, "growpart: {}\npackages: [vim]\nmystery: 1\nntp: {}\nswap: ~\n")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, n := range plan.Notes {
		got = append(got, n.String())
	}
	want := []string{"mystery: skipped: unknown key", "ntp: skipped: a local machine uses the clock of its host", "packages: skipped: local machines can't install packages"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("notes (-want +got):\n%s", diff)
	}
}

func TestEmptyPlans(t *testing.T) {
	if !(Plan{Hostname: "a", Timezone: "UTC", Notes: []Note{{}}}).Empty() || (Plan{RootKeys: []string{"k"}}).Empty() || (Plan{Scripts: []Script{{}}}).Empty() {
		t.Error("a plan with nothing to do is not empty, or the other way round")
	}
}

func TestQuotedWordsSurviveAShell(t *testing.T) {
	for want, words := range map[string][]string{
		`''`: {""}, `'a b' 'c'`: {"a b", "c"}, `'it'\''s'`: {"it's"}, `'$HOME' '` + "`x`" + `'`: {"$HOME", "`x`"},
	} {
		if got := quoted(words); got != want {
			t.Errorf("%q is quoted as %s, want %s", words, got, want)
		}
	}
}
