package plane

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/spf13/cobra"

	"github.com/drover-dev/drover/internal/cli/ui"
	"github.com/drover-dev/drover/internal/plane"
)

// terminal runs commands non-interactively on its own home.
type terminal struct {
	*testing.T
	home string
}

func newTerminal(t *testing.T) *terminal {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("DROVER_METAL_HOME", filepath.Join(dir, "metal"))
	t.Setenv("DROVER_METAL", "none")
	t.Setenv("DROVER_PASSPHRASE", "")
	return &terminal{T: t, home: filepath.Join(dir, "home")}
}

// result is the outcome of a command.
type result struct {
	code     int
	out, err string
}

func (c *terminal) run(args ...string) result {
	c.Helper()
	var out, err bytes.Buffer
	io := &ui.IO{In: &bytes.Buffer{}, Out: &out, Err: &err}
	root := &cobra.Command{Use: "drover", SilenceErrors: true, SilenceUsage: true}
	root.AddGroup(&cobra.Group{ID: "plane"})
	AddCommands(root, io)
	root.SetOut(&out)
	root.SetErr(&err)
	root.SetArgs(append(args, "--home", c.home))
	code := ui.Report(&err, root.ExecuteContext(c.Context()))
	return result{code: code, out: out.String(), err: err.String()}
}

// write writes a file in the home.
func (c *terminal) write(name string, value any) {
	c.Helper()
	data, err := json.Marshal(value)
	if err != nil {
		c.Fatal(err)
	}
	file := filepath.Join(c.home, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		c.Fatal(err)
	}
	if err := os.WriteFile(file, data, 0o600); err != nil {
		c.Fatal(err)
	}
}

// stopped makes the home look like that of a stopped or killed plane.
func (c *terminal) stopped(phase string) {
	c.Helper()
	c.write("home.json", map[string]any{"format": 1, "drover": "v0.1.0", "kubernetes": "v1.36.3"})
	c.write("run/state.json", plane.State{
		Home: c.home, Phase: phase, API: "https://127.0.0.1:6443", Drover: "v0.1.0", Kubernetes: "v1.36.3", ClusterAPI: "v1.14.2",
		Components: []plane.ComponentStatus{{Name: "etcd", State: plane.Ready, PID: 1, Version: "3.6.8"}},
	})
}
