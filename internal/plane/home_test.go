package plane

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/drover-dev/drover/internal/base/process"
)

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestCheckRejectsForeignDirectories(t *testing.T) {
	tests := map[string]struct {
		files map[string]string
		want  string
	}{
		"a directory that is not there yet": {},
		"an empty home":                     {files: map[string]string{"logs/x.log": ""}},
		"a home of ours":                    {files: map[string]string{"home.json": `{"format":1}`, "pki/ca.crt": ""}},
		"a directory with other things":     {files: map[string]string{"thesis.tex": ""}, want: "is not a home of Drover"},
		"a home of a later Drover":          {files: map[string]string{"home.json": `{"format":2,"drover":"v9.0.0"}`}, want: "of Drover v9.0.0"},
		"a damaged home":                    {files: map[string]string{"home.json": `{"form`}, want: "parsing home file"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			h := Home{Dir: filepath.Join(t.TempDir(), "home")}
			for path, content := range tt.files {
				write(t, h.path(path), content)
			}
			err := h.Check()
			if tt.want == "" && err != nil {
				t.Errorf("refused: %v", err)
			}
			if tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("got error %v, want one with %q", err, tt.want)
			}
		})
	}
}

func TestNewerHomeIsATypedError(t *testing.T) {
	h := Home{Dir: t.TempDir()}
	write(t, h.metaFile(), `{"format":99,"drover":"v9.0.0"}`)
	var newer *NewerHomeError
	if err := h.Check(); !errors.As(err, &newer) || newer.Meta.Format != 99 {
		t.Errorf("got error %v, want a NewerHomeError", err)
	}
}

func TestDirectoriesAreCreatedPrivate(t *testing.T) {
	h := Home{Dir: t.TempDir()}
	if err := os.Mkdir(h.pkiDir(), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(h.makeRoot(), h.makeRest()); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{h.Dir, h.pkiDir(), h.etcdDir(), h.runDir()} {
		info, err := os.Stat(dir)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o700 {
			t.Errorf("%s has mode %v, want 0700", dir, info.Mode().Perm())
		}
	}
}

func TestLockIsExclusive(t *testing.T) {
	h := Home{Dir: t.TempDir()}
	if h.Running() {
		t.Error("an empty home counts as running")
	}
	first, err := h.lock()
	if err != nil {
		t.Fatal(err)
	}
	if !h.Running() {
		t.Error("a locked home does not count as running")
	}
	if _, err := h.lock(); !errors.Is(err, errLocked) {
		t.Errorf("a second lock: got %v, want errLocked", err)
	}
	_ = first.Close()
	if h.Running() {
		t.Error("an unlocked home counts as running")
	}
}

func TestMetaKeepsTheCreationTime(t *testing.T) {
	h := Home{Dir: t.TempDir()}
	day := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	if err := h.writeMeta("v1.35.4", day); err != nil {
		t.Fatal(err)
	}
	if err := h.writeMeta("v1.36.3", day.AddDate(1, 0, 0)); err != nil {
		t.Fatal(err)
	}
	meta, err := h.ReadMeta()
	if err != nil {
		t.Fatal(err)
	}
	if !meta.Created.Equal(day) || meta.Kubernetes != "v1.36.3" {
		t.Errorf("meta = %+v, want the first day and the last version", meta)
	}
}

func TestLeftoverCleanupKeepsForeignProcesses(t *testing.T) {
	h := Home{Dir: t.TempDir()}
	stranger := testComponent("serve").Command()
	ours := testComponent("serve").Command()
	for _, cmd := range []interface{ Start() error }{stranger, ours} {
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
	}
	defer func() { _ = stranger.Process.Kill(); _ = stranger.Wait() }()
	go func() { _ = ours.Wait() }()
	reused := process.Identify(stranger.Process.Pid)
	reused.Start = "before-the-reboot/42"
	write(t, h.stateFile(), "")
	if err := writeJSON(h.stateFile(), State{Children: []process.Process{reused, process.Identify(ours.Process.Pid)}}); err != nil {
		t.Fatal(err)
	}
	if err := h.endLeftovers(); err != nil {
		t.Fatal(err)
	}
	if process.Identify(ours.Process.Pid).Alive() {
		t.Error("a leftover of ours lives on")
	}
	if !process.Identify(stranger.Process.Pid).Alive() {
		t.Error("a stranger that has the number of an old child was killed")
	}
}
