package local

import (
	"os"
	"path/filepath"
	"testing"
)

func TestLimitIsOnlyRaised(t *testing.T) {
	for _, tt := range []struct{ was, want string }{{"128\n", "8192"}, {"8192\n", "8192\n"}, {"65536\n", "65536\n"}} {
		file := filepath.Join(t.TempDir(), "limit")
		if err := os.WriteFile(file, []byte(tt.was), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := raise(file, 8192); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(file); err != nil || string(got) != tt.want {
			t.Errorf("%q becomes %q, %v; want %q", tt.was, got, err, tt.want)
		}
	}
	if err := raise(filepath.Join(t.TempDir(), "none"), 1); err == nil {
		t.Error("a limit that can't be read is no error")
	}
}
