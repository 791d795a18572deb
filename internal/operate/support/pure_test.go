package support

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
)

func TestLastBytesBoundaries(t *testing.T) {
	for name, tt := range map[string]struct {
		in   string
		most int64
		want string
	}{
		"empty":                          {"", 10, ""},
		"shorter":                        {"a\nb\n", 10, "a\nb\n"},
		"exactly as long":                {"a\nb\n", 4, "a\nb\n"},
		"one byte too long":              {"a\nb\nc", 4, "b\nc"},
		"a cut at the start of a line":   {"aa\nbb\n", 3, ""},
		"one long line is kept":          {strings.Repeat("x", 50), 10, strings.Repeat("x", 10)},
		"much longer than what is kept":  {strings.Repeat("line\n", 100_000) + "end", 8, "end"},
		"the last line without its end":  {"first\nsecond", 8, "second"},
		"bytes that are not text remain": {"\xff\xfe\n\x00", 10, "\xff\xfe\n\x00"},
	} {
		t.Run(name, func(t *testing.T) {
			for reader, r := range map[string]io.Reader{"at once": strings.NewReader(tt.in), "byte by byte": iotest.OneByteReader(strings.NewReader(tt.in))} {
				got, err := lastBytes(r, tt.most)
				if err != nil || string(got) != tt.want {
					t.Errorf("%s: %q, error %v; want %q", reader, got, err, tt.want)
				}
			}
		})
	}
	cause := errors.New("connection reset")
	got, err := lastBytes(io.MultiReader(strings.NewReader("before\n"), iotest.ErrReader(cause)), 100)
	if !errors.Is(err, cause) || string(got) != "before\n" {
		t.Errorf("%q, error %v; want what was read and the error", got, err)
	}
}

func TestArchiveNamesStayInTheArchive(t *testing.T) {
	var out bytes.Buffer
	a := newArchive(&out)
	for _, name := range []string{"facts.yaml", "objects/_cluster/x/system:admin.yaml", "../../etc/passwd", "a/../../b"} {
		if err := a.write(name, []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.close(); err != nil {
		t.Fatal(err)
	}
	var names []string
	for name := range unpack(t, &out) {
		names = append(names, name)
		if strings.Contains(name, "..") || strings.Contains(name, ":") {
			t.Errorf("entry %q", name)
		}
	}
	if len(names) != 4 {
		t.Errorf("entries %q", names)
	}
}

func TestCollectReportsUnreadableLogs(t *testing.T) {
	cause := errors.New("password=hunter22 is wrong")
	var progress []string
	var out bytes.Buffer
	missing, err := Collect(t.Context(), &out, Options{
		MaxLog: 100, Facts: map[string]string{"version": "v1"}, Progress: func(source string) { progress = append(progress, source) },
		Logs: []Log{
			{Name: "logs/a.log", Open: func(context.Context) (io.ReadCloser, error) { return nil, cause }},
			{Name: "logs/b.log", Open: func(context.Context) (io.ReadCloser, error) { return io.NopCloser(strings.NewReader("fine\n")), nil }},
			{Name: "logs/c.log", Open: func(context.Context) (io.ReadCloser, error) { return io.NopCloser(strings.NewReader("")), nil }},
			{Name: "logs/d.log", Open: func(context.Context) (io.ReadCloser, error) {
				return io.NopCloser(io.MultiReader(strings.NewReader("half\n"), iotest.ErrReader(io.ErrUnexpectedEOF))), nil
			}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"logs/a.log: password=" + hidden + " is wrong", "logs/d.log: unexpected EOF"}, missing); diff != "" {
		t.Errorf("missing (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"logs/a.log", "logs/b.log", "logs/c.log", "logs/d.log"}, progress); diff != "" {
		t.Errorf("progress (-want +got):\n%s", diff)
	}
	files := unpack(t, &out)
	want := []string{"support-bundle/facts.yaml", "support-bundle/logs/b.log", "support-bundle/logs/d.log", "support-bundle/missing.txt"}
	var got []string
	for name := range files {
		got = append(got, name)
	}
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

func TestCollectEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	opened := 0
	log := Log{Name: "a.log", Open: func(context.Context) (io.ReadCloser, error) {
		opened++
		cancel()
		return io.NopCloser(strings.NewReader("x")), nil
	}}
	if _, err := Collect(ctx, io.Discard, Options{MaxLog: 10, Logs: []Log{log, log}}); !errors.Is(err, context.Canceled) || opened != 1 {
		t.Errorf("error %v after %d logs", err, opened)
	}
}

func TestFilesAreLogsAndYAML(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a.log", "sub/b.log.1", "c.yaml", "secret.key", "d.json"} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "link.log")); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, l := range Files(dir, "plane") {
		r, err := l.Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(r)
		r.Close()
		if err != nil || "plane/"+string(data) != l.Name {
			t.Errorf("%s contains %q, error %v", l.Name, data, err)
		}
		names = append(names, l.Name)
	}
	if diff := cmp.Diff([]string{"plane/a.log", "plane/c.yaml", "plane/sub/b.log.1"}, names); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	if got := Files(filepath.Join(dir, "missing"), "x"); got != nil {
		t.Errorf("files %v of a directory that does not exist", got)
	}
}

func TestSizeReplacesSecrets(t *testing.T) {
	for want, v := range map[string]any{
		"<redacted, 3 bytes in 1 lines>": "abc", "<redacted, 4 bytes in 2 lines>": "a\nbc", "<redacted, 0 bytes in 1 lines>": 7, "<redacted, 2 bytes in 1 lines>": "é",
	} {
		if got := size(v); got != want {
			t.Errorf("%#v becomes %q, want %q", v, got, want)
		}
	}
}

func TestSecretFields(t *testing.T) {
	for name, want := range map[string]bool{
		"password": true, "adminPassword": true, "PASSWD": true, "token": true, "tokens": true, "apiKey": true, "api_key": true, "privateKey": true, "credentials": true, ".dockerconfigjson": true,
		"tokenExpiry": false, "secretName": false, "credentialsRef": false, "passwordFile": false, "key": false, "name": false,
	} {
		if got := secretField.MatchString(name); got != want {
			t.Errorf("field %q is secret: %t", name, got)
		}
	}
}

func TestEmptyFieldsAreKept(t *testing.T) {
	o := &unstructured.Unstructured{Object: map[string]any{"kind": "Any", "spec": map[string]any{"password": "", "count": int64(3), "on": true, "nothing": nil, "list": []any{int64(1), "text"}}}}
	want := o.DeepCopy()
	Object(o)
	if diff := cmp.Diff(want.Object, o.Object); diff != "" {
		t.Errorf("object (-want +got):\n%s", diff)
	}
}

func TestObjectsAreSortedIntoDirectories(t *testing.T) {
	var out bytes.Buffer
	c := &collector{archive: newArchive(&out)}
	kind := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
	for _, namespace := range []string{"team", ""} {
		o := &unstructured.Unstructured{Object: map[string]any{}}
		o.SetName("a")
		o.SetNamespace(namespace)
		if err := c.object(kind, o); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.archive.close(); err != nil {
		t.Fatal(err)
	}
	files := unpack(t, &out)
	for _, name := range []string{"support-bundle/objects/team/widgets.example.com/a.yaml", "support-bundle/objects/_cluster/widgets.example.com/a.yaml"} {
		if _, found := files[name]; !found {
			t.Errorf("%q is not in %v", name, files)
		}
	}
}

func TestLogsOfRestartedContainers(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "manager-0", Namespace: "drover-system"}}
	client := fake.NewClientset(pod)
	for previous, want := range map[bool]string{false: "logs/manager-0/manager.log", true: "logs/manager-0/manager.previous.log"} {
		options := &corev1.PodLogOptions{Container: "manager", Previous: previous}
		if got := podLog(client, pod, options); got.Name != want || !options.Timestamps {
			t.Errorf("log %q, want %q", got.Name, want)
		}
	}
}

func FuzzText(f *testing.F) {
	f.Add("password=abcd https://u:p@h -----BEGIN PRIVATE KEY-----\nx")
	f.Add("Bearer \xff\xfe 12345678")
	f.Fuzz(func(t *testing.T, text string) {
		once := Text(text)
		if twice := Text(once); len(twice) > 2*len(once)+100 {
			t.Errorf("%q grows to %q", once, twice)
		}
		if got := Text("-----BEGIN PRIVATE KEY-----\n" + text); strings.Contains(got, "BEGIN PRIVATE KEY") {
			t.Errorf("a private key remains: %q", got)
		}
	})
}
