package version

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestShippedVersionsMatchModuleFiles(t *testing.T) {
	files, err := filepath.Glob("../../../kube/kubernetes/*.mod")
	if err != nil || len(files) == 0 {
		t.Fatalf("no module files: %v", err)
	}
	pin := regexp.MustCompile(`(?m)^(?:require)?\s*k8s\.io/kubernetes (v\S+)`)
	var pinned []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		found := pin.FindSubmatch(text)
		if found == nil {
			t.Fatalf("%s pins no Kubernetes", file)
		}
		pinned = append(pinned, string(found[1]))
	}
	if diff := cmp.Diff(slices.Sorted(slices.Values(pinned)), slices.Sorted(slices.Values(shipped))); diff != "" {
		t.Errorf("pinned and shipped differ (-pinned +shipped):\n%s", diff)
	}
}

func TestReleaseOfMinor(t *testing.T) {
	got, err := ForMinor("1.36")
	if err != nil || got != Kubernetes {
		t.Errorf("1.36 is %q, %v", got, err)
	}
	if got, err := ForMinor("1.20"); err == nil || !strings.Contains(err.Error(), "1.36, 1.35") {
		t.Errorf("1.20 is %q, %v", got, err)
	}
}
