package payload

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func write(t *testing.T, name string, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, content, 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func readAll(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// attach puts content into an executable, under a header that describes it.
func attach(t *testing.T, executable, content string) Header {
	t.Helper()
	var compressed bytes.Buffer
	if err := Compress(&compressed, strings.NewReader(content)); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256([]byte(content))
	h := Header{Version: "v1.2.3", Key: "k", SHA256: hex.EncodeToString(sum[:]), Size: int64(len(content))}
	if err := Attach(executable, write(t, "kube.zst", compressed.Bytes()), h); err != nil {
		t.Fatal(err)
	}
	return h
}

func unpack(t *testing.T, executable string) string {
	t.Helper()
	p, err := Open(executable)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := p.Unpack(&out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestAttachedPayloadIsFoundAgain(t *testing.T) {
	executable := write(t, "drover", []byte("\x7fELF and so on"))
	content := strings.Repeat("Kubernetes ", 100_000)
	h := attach(t, executable, content)
	p, err := Open(executable)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(h, p.Header); diff != "" {
		t.Errorf("unexpected header (-want +got):\n%s", diff)
	}
	if unpack(t, executable) != content {
		t.Error("the unpacked payload differs from the attached one")
	}
}

func TestAttachReplacesTheEarlierPayload(t *testing.T) {
	twice, once := write(t, "drover", []byte("program")), write(t, "drover", []byte("program"))
	attach(t, twice, strings.Repeat("an older and longer one ", 1000))
	attach(t, twice, "new")
	attach(t, once, "new")
	if !bytes.Equal(readAll(t, twice), readAll(t, once)) {
		t.Error("attaching twice leaves another file than attaching once")
	}
}

func TestAttachedProgramRuns(t *testing.T) {
	source := write(t, "main.go", []byte("package main\n\nfunc main() { print(\"still runs\") }\n"))
	executable := filepath.Join(t.TempDir(), "program")
	if out, err := exec.Command("go", "build", "-o", executable, source).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	attach(t, executable, "payload")
	out, err := exec.Command(executable).CombinedOutput()
	if err != nil || string(out) != "still runs" {
		t.Errorf("got output %q, error %v", out, err)
	}
}

func TestFailedAttachKeepsTheExecutable(t *testing.T) {
	executable := write(t, "drover", []byte("program"))
	if err := Attach(executable, filepath.Join(t.TempDir(), "missing"), Header{}); err == nil {
		t.Error("attaching a missing file: got no error, want one")
	}
	if got := string(readAll(t, executable)); got != "program" {
		t.Errorf("the executable holds %q", got)
	}
	files, err := os.ReadDir(filepath.Dir(executable))
	if err != nil || len(files) != 1 {
		t.Errorf("left %d files (%v), want only the executable", len(files), err)
	}
}

func TestOpenReportsAMissingPayload(t *testing.T) {
	for name, content := range map[string]string{"empty": "", "short": "x", "long": strings.Repeat("program", 100)} {
		t.Run(name, func(t *testing.T) {
			if _, err := Open(write(t, "drover", []byte(content))); !errors.Is(err, ErrNone) {
				t.Errorf("got error %v, want ErrNone", err)
			}
		})
	}
}

func TestDamagedPayloadIsDetected(t *testing.T) {
	const program = "program"
	tests := []struct {
		name   string
		damage func(file []byte) []byte
		why    string
	}{
		{"in the stream", func(f []byte) []byte { f[len(program)+40] ^= 0xff; return f }, ""},
		{"in the header", func(f []byte) []byte { f[bytes.LastIndexByte(f, '{')] = '!'; return f }, "unreadable header"},
		{"in the lengths", func(f []byte) []byte { f[len(f)-footerLen] = 0xff; return f }, "impossible lengths"},
		{"an incomplete header", func(f []byte) []byte { return bytes.Replace(f, []byte(`"version"`), []byte(`"zersion"`), 1) }, "incomplete header"},
		{"a size that is too small", resize("10000"), "wrong size"},
		{"a size that is too large", resize("99999"), "wrong size"},
		{"another checksum", func(f []byte) []byte {
			i := bytes.Index(f, []byte(`"sha256":"`)) + len(`"sha256":"`)
			copy(f[i:], strings.Repeat("0", 64))
			return f
		}, "wrong checksum"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			executable := write(t, "drover", []byte(program))
			attach(t, executable, strings.Repeat("0123456789abcdefghij", 1000))
			damaged := write(t, "drover", tt.damage(readAll(t, executable)))
			p, err := Open(damaged)
			if err == nil {
				err = p.Unpack(&bytes.Buffer{})
			}
			var corrupt *CorruptError
			if !errors.As(err, &corrupt) || !strings.Contains(corrupt.Why, tt.why) {
				t.Errorf("got error %v, want a CorruptError because of %q", err, tt.why)
			}
		})
	}
}

// resize changes the size in the header, which is 20000 in this test.
func resize(to string) func([]byte) []byte {
	return func(f []byte) []byte { return bytes.Replace(f, []byte(`"size":20000`), []byte(`"size":`+to), 1) }
}

func TestUnpackReturnsWriterErrors(t *testing.T) {
	executable := write(t, "drover", []byte("program"))
	attach(t, executable, "content")
	p, err := Open(executable)
	if err != nil {
		t.Fatal(err)
	}
	full := errors.New("disk full")
	if err := p.Unpack(failing{full}); !errors.Is(err, full) {
		t.Errorf("got error %v, want the writer's", err)
	}
}

type failing struct{ err error }

func (w failing) Write([]byte) (int, error) { return 0, w.err }

func TestBareIsTheExecutableWithoutItsPayload(t *testing.T) {
	executable := write(t, "drover", []byte("program"))
	for range 2 { // Without one first, then with one.
		r, err := Bare(executable)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(r)
		if err := errors.Join(err, r.Close()); err != nil || string(got) != "program" {
			t.Errorf("read %q, %v", got, err)
		}
		attach(t, executable, "kubernetes")
	}
}
