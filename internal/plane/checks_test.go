package plane

import (
	"math"
	"path/filepath"
	"strings"
	"testing"
)

func TestKubernetesStep(t *testing.T) {
	tests := map[string]struct{ from, to, want string }{
		"the same version":     {"v1.36.3", "v1.36.3", ""},
		"a later patch":        {"v1.36.3", "v1.36.9", ""},
		"an earlier patch":     {"v1.36.3", "v1.36.0", ""},
		"the next minor":       {"v1.35.4", "v1.36.3", ""},
		"the minor before":     {"v1.36.3", "v1.35.4", "can't go back"},
		"two minors at once":   {"v1.34.0", "v1.36.3", "use a Drover with Kubernetes 1.35 first"},
		"another major":        {"v1.36.3", "v2.0.0", "can't go back"},
		"garbage in the home":  {"one", "v1.36.3", "parsing the Kubernetes version of the home"},
		"garbage in the files": {"v1.36.3", "", "parsing the version of the Kubernetes binary"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			err := kubernetesStep(tt.from, tt.to)
			if tt.want == "" && err != nil {
				t.Errorf("refused: %v", err)
			}
			if tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("got error %v, want one with %q", err, tt.want)
			}
		})
	}
}

func TestFreeSpaceIsMeasuredAtTheHome(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "not", "yet", "there")
	if err := spaceLeft(dir, 1); err != nil {
		t.Errorf("one byte is too much: %v", err)
	}
	err := spaceLeft(dir, math.MaxUint64)
	if err == nil || !strings.Contains(err.Error(), "free some space or choose another --home") {
		t.Errorf("got error %v, want one that says what to do", err)
	}
}

func TestHomeBelowAFileIsRejected(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "file"), "")
	err := writable(filepath.Join(dir, "file", "home"))
	if err == nil || !strings.Contains(err.Error(), "is not a directory") {
		t.Errorf("got error %v, want one that names the file", err)
	}
}
