package e2e

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	_ "unsafe" // for the name of a variable elsewhere
)

// Versions of Drover in the test.
const (
	oldDrover = "v0.5.0"
	newDrover = "v0.6.0"
)

// stampRoom is the place for the version in a copy of this program. It is as long as any version,
// and occurs once in the file.
var stampRoom = "version of this program:                "

// linkedVersion is the variable that the linker sets in a release build.
//
//go:linkname linkedVersion github.com/drover-dev/drover/internal/base/version.version
var linkedVersion string

// beOfVersion makes a stamped copy report its stamp as its version.
func beOfVersion() {
	_, version, _ := strings.Cut(stampRoom, ":")
	if version = strings.TrimSpace(version); version != "" {
		linkedVersion = version
	}
}

// stamped copies this program with another version, as if it were built from another tag.
func stamped(t *testing.T, version string) string {
	t.Helper()
	program, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	name, _, _ := strings.Cut(stampRoom, ":")
	stamp := fmt.Sprintf("%-*s", len(stampRoom), name+":"+version)
	if n := bytes.Count(program, []byte(stampRoom)); n != 1 || len(stamp) != len(stampRoom) {
		t.Fatalf("there are %d places for version %q", n, version)
	}
	file := filepath.Join(t.TempDir(), "drover")
	if err := os.WriteFile(file, bytes.Replace(program, []byte(stampRoom), []byte(stamp), 1), 0o700); err != nil {
		t.Fatal(err)
	}
	return file
}
