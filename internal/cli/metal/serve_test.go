package metal

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/drover-dev/drover/internal/cli/machine"
	"github.com/drover-dev/drover/internal/cli/ui"
	"github.com/drover-dev/drover/internal/metal"
	"github.com/drover-dev/drover/internal/metal/admin"
	"github.com/drover-dev/drover/internal/metal/api"
)

// output is a stream that can be read while it is written.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// run runs a command and returns its standard output.
func run(t *testing.T, build func(*ui.IO) *cobra.Command, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	cmd := build(&ui.IO{In: strings.NewReader(""), Out: &out, Err: io.Discard})
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(args)
	err := cmd.ExecuteContext(t.Context())
	return out.String(), err
}

// serve starts a metal service and returns a function that stops it.
func serve(t *testing.T, home string) (stop func() error, talk *output) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	talk = &output{}
	cmd := NewCommand(&ui.IO{In: strings.NewReader(""), Out: io.Discard, Err: talk})
	cmd.SetArgs([]string{"serve", "--home", home, "--speed", "10000"})
	done := make(chan error, 1)
	go func() { done <- cmd.ExecuteContext(ctx) }()
	t.Cleanup(cancel)
	for end := time.Now().Add(10 * time.Second); !strings.Contains(talk.String(), "drover machine list"); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("metal does not serve: %s", talk)
		}
	}
	return func() error { cancel(); return <-done }, talk
}

func TestServe(t *testing.T) {
	home := t.TempDir()
	if _, err := run(t, machine.NewCommand, "list", "--metal-home", home); err == nil || !strings.Contains(err.Error(), "drover metal serve") {
		t.Errorf("without a metal: %v", err)
	}
	stop, talk := serve(t, home)
	before, err := metal.Home{Dir: home}.ReadEndpoint()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(talk.String(), before.URL+"/metal/v1") {
		t.Errorf("it does not say where it serves: %s", talk)
	}
	id, err := run(t, NewCommand, "project", "create", "team", "--home", home)
	if err != nil {
		t.Fatal(err)
	}
	id = strings.TrimSpace(id)
	for _, file := range []string{before.AdminToken, filepath.Join(home, "tokens", "project-"+id), filepath.Join(home, "endpoint.json")} {
		info, err := os.Stat(file)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v %v, want it to be private", file, info, err)
		}
	}
	list, err := run(t, NewCommand, "project", "list", "--home", home)
	if err != nil || !strings.Contains(list, "team") || !strings.Contains(list, "default") {
		t.Errorf("projects: %q %v", list, err)
	}
	for _, args := range [][]string{{"token"}, {"token", "team"}, {"token", "--admin"}} {
		if token, err := run(t, NewCommand, append(args, "--home", home)...); err != nil || len(strings.TrimSpace(token)) < 32 {
			t.Errorf("%v: %q %v", args, token, err)
		}
	}
	if _, err := run(t, NewCommand, "token", "nobody", "--home", home); err == nil {
		t.Error("got a token for a missing project, want none")
	}
	look(t, home, id)
	if err := stop(); err != nil {
		t.Errorf("stopping: %v", err)
	}
	if _, err := run(t, machine.NewCommand, "list", "--metal-home", home); err == nil || !strings.Contains(err.Error(), "no metal service at") {
		t.Errorf("after the end: %v", err)
	}
	stop, _ = serve(t, home)
	after, err := metal.Home{Dir: home}.ReadEndpoint()
	if err != nil || after.URL != before.URL {
		t.Errorf("the address was %s and is %s after a restart: %v", before.URL, after.URL, err)
	}
	if err := stop(); err != nil {
		t.Errorf("stopping again: %v", err)
	}
}

// look creates a machine and inspects it with the commands.
func look(t *testing.T, home, project string) {
	t.Helper()
	c, err := admin.Open(metal.Home{Dir: home})
	if err != nil {
		t.Fatal(err)
	}
	var d api.Device
	body := map[string]any{"hostname": "node-1", "plan": "c3.small.x86", "metro": "da", "operating_system": "ubuntu_24_04", "tags": []string{"blue"}}
	if err := c.Do(t.Context(), "POST", "/projects/"+project+"/devices", body, &d); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(10 * time.Second); d.State != metal.StateActive; {
		if d, err = c.FindDevice(t.Context(), "node-1"); err != nil || time.Now().After(end) {
			t.Fatalf("%s %v", d.State, err)
		}
	}
	table, err := run(t, machine.NewCommand, "list", "--metal-home", home)
	if err != nil || !strings.Contains(table, "node-1") || !strings.Contains(table, "active") {
		t.Errorf("list: %q %v", table, err)
	}
	text, err := run(t, machine.NewCommand, "list", "--metal-home", home, "-o", "json", "--tag", "blue", "--project", project)
	var machines []api.Device
	if err != nil || json.Unmarshal([]byte(text), &machines) != nil || len(machines) != 1 || machines[0].ID != d.ID {
		t.Errorf("list as JSON: %q %v", text, err)
	}
	logs, err := run(t, machine.NewCommand, "logs", "node-1", "--metal-home", home)
	if err != nil || !strings.Contains(logs, "provisioning.110") || !strings.Contains(logs, "installing ubuntu_24_04") {
		t.Errorf("logs: %q %v", logs, err)
	}
	console, err := run(t, machine.NewCommand, "console", d.ID[:8], "--metal-home", home)
	if err != nil || !strings.Contains(console, "booting node-1") {
		t.Errorf("console: %q %v", console, err)
	}
	if _, err := run(t, machine.NewCommand, "logs", "node-2", "--metal-home", home); err == nil || !strings.Contains(err.Error(), "drover machine list") {
		t.Errorf("missing machine: got error %v", err)
	}
}

func TestServeRejectsInvalidOptions(t *testing.T) {
	for name, args := range map[string][]string{
		"an unknown driver": {"serve", "--driver", "cloud"},
		"no speed":          {"serve", "--speed", "0"},
	} {
		if _, err := run(t, NewCommand, append(args, "--home", t.TempDir())...); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
}
