package background

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestBrowserGetsTheAddressFromAPrivateFile(t *testing.T) {
	dir := t.TempDir()
	record := filepath.Join(dir, "record")
	script := "#!/bin/sh\necho \"$@\" > " + record + "\nstat -c %a \"$1\" >> " + record + "\ncat \"$1\" >> " + record + "\n"
	if err := os.WriteFile(filepath.Join(dir, "xdg-open"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	t.Setenv("DISPLAY", ":0")
	remove, err := OpenBrowser(t.Context(), "http://127.0.0.1:1/#token=secret")
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(record)
	if err != nil {
		t.Fatal(err)
	}
	arguments, rest, _ := strings.Cut(string(data), "\n")
	if strings.Contains(arguments, "secret") || !strings.HasPrefix(rest, "600\n") || !strings.Contains(rest, "http://127.0.0.1:1/#token=secret") {
		t.Errorf("the browser was started with %q, a file of mode and content %q", arguments, rest)
	}
	remove()
	if _, err := os.Stat(strings.TrimSpace(arguments)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file stays: %v", err)
	}
}

func TestBrowserNeedsADesktop(t *testing.T) {
	t.Setenv("DISPLAY", "")
	t.Setenv("WAYLAND_DISPLAY", "")
	if _, err := OpenBrowser(t.Context(), "http://127.0.0.1:1/"); !errors.Is(err, ErrNoBrowser) {
		t.Errorf("got %v, want %v", err, ErrNoBrowser)
	}
}
