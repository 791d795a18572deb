package web_test

import (
	"errors"
	"os"
	"os/exec"
	"testing"

	"github.com/drover-dev/drover/internal/test/browsertest"
	"github.com/drover-dev/drover/internal/test/inputs"
)

// TestLogicOfThePage runs the tests in src in a browser.
func TestLogicOfThePage(t *testing.T) {
	if testing.Short() {
		t.Skip("a browser takes seconds")
	}
	inputs.DependOn(t, "src")
	b, err := browsertest.New(t.Context(), 800, 600)
	if errors.Is(err, browsertest.ErrNoBrowser) && os.Getenv("CI") == "" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	bundle := exec.CommandContext(t.Context(), "go", "tool", "-modfile=../hack/tools/go.mod", "esbuild", "src/fleet_test.ts", "--bundle", "--format=iife", "--log-level=warning")
	bundle.Stderr = os.Stderr
	script, err := bundle.Output()
	if err != nil {
		t.Fatal(err)
	}
	var failures []string
	if err := b.Eval(string(script)+"; failures", &failures); err != nil {
		t.Fatal(err)
	}
	for _, f := range failures {
		t.Error(f)
	}
}
