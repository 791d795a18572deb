package guest

import (
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func TestHostsAndResolvers(t *testing.T) {
	v4, v6 := Address{IP: netip.MustParseAddr("198.18.0.2")}, Address{IP: netip.MustParseAddr("2001:db8::2")}
	const local = "127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n"
	const comment = "# The first process of the machine answers, from the file hosts.\n"
	for name, tt := range map[string]struct {
		spec             Spec
		hosts, resolvers string
	}{
		"a machine without addresses": {Spec{Hostname: "box"}, local, comment},
		"a short name": {
			Spec{Hostname: "box", Addresses: []Address{v4}},
			local + "198.18.0.2 box\n", comment + "nameserver 198.18.0.2\n",
		},
		"a long name has a short one": {
			Spec{Hostname: "box.example.com", Addresses: []Address{v4, v6}},
			local + "198.18.0.2 box.example.com box\n2001:db8::2 box.example.com box\n", comment + "nameserver 198.18.0.2\n",
		},
		"the metadata service has three names": {
			Spec{Hostname: "box", Metadata: netip.MustParseAddrPort("198.18.0.1:80")},
			local + "169.254.169.254 metadata.platformequinix.com metadata.packet.net metadata\n", comment,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.hosts, tt.spec.hosts()); diff != "" {
				t.Errorf("hosts (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.resolvers, tt.spec.resolvers()); diff != "" {
				t.Errorf("resolvers (-want +got):\n%s", diff)
			}
			if tt.spec.Hostname != "box" || len(tt.spec.Addresses) == 0 {
				return
			}
			if got := lookup(tt.spec.hosts(), "box"); len(got) != len(tt.spec.Addresses) {
				t.Errorf("the machine finds itself at %v", got)
			}
		})
	}
}

func TestMachineID(t *testing.T) {
	first, again := Spec{ID: "a"}.machineID(), Spec{ID: "a"}.machineID()
	if len(first) != 32 || first != again {
		t.Errorf("IDs %q and %q, want the same 32 digits", first, again)
	}
	for name, other := range map[string]Spec{"another machine": {ID: "b"}, "after it was wiped": {ID: "a", Reinstalled: 1}} {
		if other.machineID() == first {
			t.Errorf("%s: got ID %q again, want a new one", name, first)
		}
	}
}

func TestWithoutMiddle(t *testing.T) {
	for _, tt := range []struct {
		text  string
		limit int
		want  string
	}{
		{"", 10, ""},
		{"0123456789", 10, "0123456789"},
		{"0123456789a", 10, "01234 … 6789a"},
		{"ééééééé", 10, "éé … éé"}, // the cuts would split two-byte characters
	} {
		got := truncateMiddle(tt.text, tt.limit)
		if got != tt.want || !utf8.ValidString(got) {
			t.Errorf("%q within %d bytes is %q, want %q", tt.text, tt.limit, got, tt.want)
		}
	}
}

func TestLastWriterKeepsTheEnd(t *testing.T) {
	w := &lastWriter{}
	for range 1000 {
		if n, err := w.Write([]byte("ä line\n")); n != len("ä line\n") || err != nil {
			t.Fatalf("wrote %d bytes, error %v", n, err)
		}
	}
	if len(w.text) > 2000 {
		t.Errorf("it keeps %d bytes", len(w.text))
	}
	if got, want := w.String(), strings.TrimSuffix(strings.Repeat("ä line\n", 8), "\n"); got != want {
		t.Errorf("it ends with %q, want %q", got, want)
	}
	long := &lastWriter{}
	if _, err := long.Write([]byte("x" + strings.Repeat("é", 1500))); err != nil {
		t.Fatal(err)
	}
	if got := long.String(); !utf8.ValidString(got) || len(got) < 1990 {
		t.Errorf("a long line becomes %d bytes, valid: %t", len(got), utf8.ValidString(got))
	}
}

func TestRotate(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{"small.log": "12", "large.log": "12345", "other.txt": "1234567890"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	rotate(dir, 5)
	got := map[string]string{}
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		got[filepath.Base(file)] = string(data)
	}
	want := map[string]string{"small.log": "12", "large.log": "", "large.log.1": "12345", "other.txt": "1234567890"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("logs (-want +got):\n%s", diff)
	}
	rotate(filepath.Join(dir, "missing"), 5)
}

func TestLookPath(t *testing.T) {
	dir := t.TempDir()
	for name, mode := range map[string]os.FileMode{"program": 0o755, "text": 0o644} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, mode); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "directory"), 0o755); err != nil {
		t.Fatal(err)
	}
	env := []string{"PATH=/no-such-directory:" + dir, "OTHER=1"}
	for name, want := range map[string]string{"program": filepath.Join(dir, "program"), "/a/b": "/a/b", "./c": "./c"} {
		if got, err := lookPath(name, env); err != nil || got != want {
			t.Errorf("%s is found at %q (error %v), want %q", name, got, err, want)
		}
	}
	for _, name := range []string{"text", "directory", "missing"} {
		if got, err := lookPath(name, env); err == nil {
			t.Errorf("%s is found at %q", name, got)
		} else if want := "finding " + name + ": file does not exist"; err.Error() != want {
			t.Errorf("error %q, want %q", err, want)
		}
	}
	if got, err := lookPath("sh", nil); err != nil || filepath.Base(got) != "sh" {
		t.Errorf("sh is found at %q (error %v) in the default path", got, err)
	}
}

func TestReadSpec(t *testing.T) {
	dir := t.TempDir()
	if _, err := ReadSpec(dir); !os.IsNotExist(err) {
		t.Errorf("error %v without a file", err)
	}
	file := filepath.Join(dir, SpecFile)
	if err := os.WriteFile(file, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadSpec(dir); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("error %v does not name the file", err)
	}
	if err := os.WriteFile(file, []byte(`{"ID":"m-1","CPUs":2,"Addresses":[{"IP":"198.18.0.2","Prefix":"198.18.0.0/22","Gateway":""}],"Userdata":"aGk="}`), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := ReadSpec(dir)
	if err != nil {
		t.Fatal(err)
	}
	if got.ID != "m-1" || got.CPUs != 2 || string(got.Userdata) != "hi" || len(got.Addresses) != 1 || got.Addresses[0].Gateway.IsValid() {
		t.Errorf("spec %+v", got)
	}
}

func TestDataDirsAndImages(t *testing.T) {
	for name, path := range DataDirs() {
		if !filepath.IsAbs(path) || filepath.Base(path) != name {
			t.Errorf("directory %q is mounted at %q", name, path)
		}
	}
	if got, want := ImportedFile("/machines/m", "app.tar"), "/machines/m/data/containerd/drover-images/app.tar"; got != want {
		t.Errorf("the mark of an archive is %q, want %q", got, want)
	}
}

func TestLinkControllers(t *testing.T) {
	dir := t.TempDir()
	for _, h := range []Hierarchy{{Name: "cpu,cpuacct"}, {Name: "memory"}} {
		if err := linkControllers(dir, h); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"cpu", "cpuacct"} {
		if got, err := os.Readlink(filepath.Join(dir, name)); err != nil || got != "cpu,cpuacct" {
			t.Errorf("%s leads to %q, error %v", name, got, err)
		}
	}
	if exists(filepath.Join(dir, "memory")) {
		t.Error("a hierarchy of one controller is linked")
	}
	if err := linkControllers(dir, Hierarchy{Name: "cpu,cpuset"}); err == nil {
		t.Error("a controller of two hierarchies is no error")
	}
}

func FuzzAnswer(f *testing.F) {
	f.Add([]byte{}, "127.0.0.1 localhost")
	f.Add([]byte("\x00\x07\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x03box\x00\x00\x01\x00\x01"), hosts)
	f.Add([]byte("\x00\x07\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\xc0\x0c\x00\x01\x00\x01"), hosts)
	f.Fuzz(func(t *testing.T, query []byte, hosts string) {
		reply, err := answer(query, hosts)
		if err == nil && (len(reply) < 12 || reply[2]&0x80 == 0 || reply[0] != query[0] || reply[1] != query[1]) {
			t.Errorf("%x is answered with %x", query, reply)
		}
	})
}
