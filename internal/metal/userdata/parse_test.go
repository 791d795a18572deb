package userdata

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func variables() map[string]any {
	return map[string]any{
		"v1":          map[string]any{"instance_id": "id-1", "local_hostname": "box"},
		"ds":          map[string]any{"meta_data": map[string]any{"local_hostname": "box", "public_ipv4": "198.18.0.2"}},
		"instance_id": "id-1",
	}
}

func gzipped(text string) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	w.Write([]byte(text))
	w.Close()
	return b.Bytes()
}

func encoded(data []byte) string { return base64.StdEncoding.EncodeToString(data) }

const mimeMessage = `Content-Type: multipart/mixed; boundary="===b"
MIME-Version: 1.0

--===b
Content-Type: text/cloud-config; charset="us-ascii"

#cloud-config
runcmd: [first]
hostname: one

--===b
Content-Type: text/x-shellscript
Content-Transfer-Encoding: base64

IyEvYmluL3NoCmVjaG8gaGkK

--===b
Content-Type: text/cloud-config

#cloud-config
runcmd: [second]
--===b--
`

func TestParse(t *testing.T) {
	for name, tt := range map[string]struct {
		data []byte
		want Plan
	}{
		"nothing":          {nil, Plan{}},
		"only white space": {[]byte("\n \n"), Plan{}},
		"commands as lines and as words": {
			[]byte("#cloud-config\nruncmd:\n- echo \"a b\"\n- [ls, -l, 7, true]\n- null\nbootcmd: [date]\n"),
			Plan{Boot: []Command{{Line: "date"}}, Commands: []Command{{Line: `echo "a b"`}, {Words: []string{"ls", "-l", "7", "true"}}}},
		},
		"files": {
			[]byte("#cloud-config\nwrite_files:\n- path: /a//b\n  content: x\n  owner: root:root\n  permissions: '0600'\n- path: /c\n  permissions: 0755\n  append: true\n  defer: true\n"),
			Plan{Files: []File{
				{Path: "/a/b", Content: []byte("x"), Owner: "root:root", Mode: 0o600},
				{Path: "/c", Content: []byte{}, Mode: 0o755, Append: true, Deferred: true},
			}},
		},
		"encoded files": {
			[]byte("#cloud-config\nwrite_files:\n- {path: /a, encoding: b64, content: " + encoded([]byte("hi")) + "}\n- {path: /b, encoding: gzip+base64, content: " + encoded(gzipped("there")) + "}\n"),
			Plan{Files: []File{{Path: "/a", Content: []byte("hi"), Mode: 0o644}, {Path: "/b", Content: []byte("there"), Mode: 0o644}}},
		},
		"a template": {
			[]byte("## template: jinja\n#cloud-config\nhostname: '{{ ds.meta_data.local_hostname }}'\nruncmd:\n- echo equinixmetal://{{ v1.instance_id }} {% if instance_id %}yes{% endif %}\n"),
			Plan{Hostname: "box", Commands: []Command{{Line: "echo equinixmetal://id-1 yes"}}},
		},
		"braces that are no template": {
			[]byte("#cloud-config\nwrite_files:\n- path: /a\n  content: '{{ .Values.x }} {% raw'\n"),
			Plan{Files: []File{{Path: "/a", Content: []byte("{{ .Values.x }} {% raw"), Mode: 0o644}}},
		},
		"a script": {
			[]byte("#!/bin/sh\necho hi\n"),
			Plan{Scripts: []Script{{Name: "part-001", Content: []byte("#!/bin/sh\necho hi\n")}}},
		},
		"compressed":            {gzipped("#cloud-config\nhostname: z\n"), Plan{Hostname: "z"}},
		"base64":                {[]byte(encoded([]byte("#cloud-config\nhostname: z\n"))), Plan{Hostname: "z"}},
		"compressed and base64": {[]byte(encoded(gzipped("#cloud-config\nhostname: z\n")) + "\n"), Plan{Hostname: "z"}},
		"several parts, of which a later one wins": {
			[]byte(mimeMessage),
			Plan{Hostname: "one", Commands: []Command{{Line: "second"}}, Scripts: []Script{{Name: "part-001", Content: []byte("#!/bin/sh\necho hi\n")}}},
		},
		"users": {
			[]byte("#cloud-config\nusers:\n- default\n- name: developer\n  gecos: Developer\n  groups: sudo, adm\n  sudo: ['ALL=(ALL) NOPASSWD:ALL']\n  shell: /bin/sh\n  ssh_authorized_keys: [k1]\n  lock_passwd: true\n  ssh_import_id: [x]\n- name: root\n  ssh_authorized_keys: [k2]\nssh_authorized_keys: [k3]\n"),
			Plan{
				Users: []User{{
					Name: "developer", Comment: "Developer", Shell: "/bin/sh", Groups: []string{"sudo", "adm"}, Sudo: "ALL=(ALL) NOPASSWD:ALL", Keys: []string{"k1"},
				}},
				RootKeys: []string{"k3", "k2"},
				Notes:    []Note{{Key: "users.developer.ssh_import_id", Text: "skipped: unknown key"}},
			},
		},
		"disks become directories": {
			[]byte("#cloud-config\nfs_setup:\n- {label: etcd_disk, filesystem: ext4, device: /dev/sdb}\nmounts:\n- [LABEL=etcd_disk, /var/lib/etcddisk]\n- [/dev/sdc1, /data]\n"),
			Plan{
				Disks:  []Disk{{Label: "etcd_disk"}},
				Mounts: []Mount{{Source: "LABEL=etcd_disk", Target: "/var/lib/etcddisk"}},
				Notes:  []Note{{Key: "mounts", Text: "/dev/sdc1 on /data skipped: a local machine mounts only tmpfs, directories, and file systems of fs_setup by label"}},
			},
		},
		"skipped keys are noted": {
			[]byte("#cloud-config\nfrobnicate: 1\nntp: {enabled: true}\ngrowpart: {mode: auto}\n"),
			Plan{Notes: []Note{
				{Key: "frobnicate", Text: "skipped: unknown key"},
				{Key: "ntp", Text: "skipped: a local machine uses the clock of its host"},
			}},
		},
		"power off after the boot": {[]byte("#cloud-config\npower_state: {mode: poweroff}\n"), Plan{Power: "poweroff"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Parse(tt.data, variables())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
		})
	}
}

func TestParseRejects(t *testing.T) {
	for name, tt := range map[string]struct{ data, want string }{
		"broken YAML":              {"#cloud-config\nruncmd: [", "reading the cloud-config: yaml"},
		"a list instead of keys":   {"#cloud-config\n- a\n", "reading the cloud-config"},
		"a command with a colon":   {"#cloud-config\nruncmd:\n- echo a: b\n", "quote it"},
		"a relative path":          {"#cloud-config\nwrite_files:\n- path: a\n", "not absolute"},
		"permissions in words":     {"#cloud-config\nwrite_files:\n- {path: /a, permissions: rw}\n", "not an octal number"},
		"an unknown encoding":      {"#cloud-config\nwrite_files:\n- {path: /a, encoding: rot13}\n", "unknown encoding"},
		"content that is not b64":  {"#cloud-config\nwrite_files:\n- {path: /a, encoding: b64, content: '!'}\n", "illegal base64"},
		"an unknown variable":      {"## template: jinja\n#cloud-config\nhostname: {{ v1.nope }}\n", "ds.meta_data"},
		"a template that is wrong": {"## template: jinja\n#cloud-config\nhostname: {% if %}\n", "Jinja"},
		"Ignition":                 {`{"ignition": {"version": "3.0.0"}}`, "Ignition"},
		"something else":           {"hello: world\n", "none of #cloud-config"},
		"a user without a name":    {"#cloud-config\nusers:\n- {gecos: x}\n", "no name"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse([]byte(tt.data), variables())
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want one with %q", err, tt.want)
			}
		})
	}
}

func TestParseErrorsOmitUserdata(t *testing.T) {
	_, err := Parse([]byte("some-prefix-that-is-long-enough secret-value"), nil)
	if err == nil || strings.Contains(err.Error(), "secret-value") {
		t.Errorf("error %v", err)
	}
}

func TestParseLargeUserdata(t *testing.T) {
	content := strings.Repeat("0123456789abcdef", 1<<16) // 1 MiB
	plan, err := Parse([]byte("#cloud-config\nwrite_files:\n- path: /big\n  content: "+content+"\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(plan.Files) != 1 || string(plan.Files[0].Content) != content {
		t.Error("the file does not have its content")
	}
	if _, err := Parse(gzipped(strings.Repeat("\x00", maxSize+1)), nil); err == nil {
		t.Error("a decompression bomb is accepted")
	}
}

func TestShellScriptQuotesArguments(t *testing.T) {
	got := ShellScript([]Command{{Words: []string{"echo", "it's", "$HOME"}}, {Line: "cd /tmp\n"}})
	if want := "'echo' 'it'\\''s' '$HOME'\ncd /tmp\n"; !strings.HasSuffix(got, want) {
		t.Errorf("script:\n%s\nwant the end:\n%s", got, want)
	}
}
