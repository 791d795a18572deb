package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/drover-dev/drover/internal/kube/node"
)

func TestNodeTargetsBuildEveryProgram(t *testing.T) {
	all, err := nodeTargets("../../kube")
	if err != nil {
		t.Fatal(err)
	}
	var built []string
	for _, target := range all {
		for _, p := range target.Packages {
			if p == "." {
				p = target.Source
			}
			built = append(built, filepath.Base(p))
		}
		for _, flag := range target.Flags {
			if strings.Contains(flag, "= ") || strings.HasSuffix(flag, "ersion=") {
				t.Errorf("%s: a version is missing in %q", target.Label, flag)
			}
		}
	}
	for _, name := range node.Names() {
		if !slices.Contains(built, name) {
			t.Errorf("no target builds %q", name)
		}
	}
}

func TestMissing(t *testing.T) {
	if got := missing(packages(), func(string) bool { return true }); len(got) != 0 {
		t.Errorf("got missing files %v, want none", got)
	}
	got := missing(packages(), func(path string) bool { return !strings.Contains(path, "nft") && !strings.Contains(path, "seccomp") })
	if want := []string{"libseccomp-dev", "nftables"}; !slices.Equal(got, want) {
		t.Errorf("missing %v, want %v", got, want)
	}
}

func TestRequirements(t *testing.T) {
	file := filepath.Join(t.TempDir(), "go.mod")
	if err := os.WriteFile(file, []byte("module x\nrequire example.com/a v1.2.3\nrequire (\n\texample.com/b v4.5.6 // indirect\n)\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := requirements(file)
	if err != nil || got["example.com/a"] != "v1.2.3" || got["example.com/b"] != "v4.5.6" {
		t.Errorf("versions %v, %v", got, err)
	}
}
