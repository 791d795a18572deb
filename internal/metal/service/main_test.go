package service_test

import (
	"context"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/drover-dev/drover/internal/cli"
	"github.com/drover-dev/drover/internal/metal"
	"github.com/drover-dev/drover/internal/metal/admin"
	"github.com/drover-dev/drover/internal/metal/api"
	"github.com/drover-dev/drover/internal/metal/service"
)

// driver of all services in this package: its machines cost nothing.
const driver = "memory"

// TestMain lets the test binary act as drover, so that a background service is a real process.
func TestMain(m *testing.M) {
	if os.Args[0] == "drover" {
		code := cli.Main()
		if file := os.Getenv(failOnce); file != "" && os.Remove(file) == nil {
			code = 1
		}
		os.Exit(code)
	}
	os.Exit(m.Run())
}

// failOnce is the variable with a file that makes the next process fail after its work.
const failOnce = "TEST_FAIL_ONCE"

// newHome returns a home that is removed, with its service, when t ends.
func newHome(t *testing.T) metal.Home {
	t.Helper()
	h := metal.Home{Dir: filepath.Join(t.TempDir(), "metal")}
	t.Cleanup(func() {
		if _, err := service.Stop(context.WithoutCancel(t.Context()), h); err != nil {
			t.Errorf("stopping: %v", err)
		}
	})
	return h
}

func ensure(t *testing.T, h metal.Home) metal.Endpoint {
	t.Helper()
	e, err := service.Ensure(t.Context(), h, driver)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// addDevice orders a machine, with the tags of a cluster.
func addDevice(t *testing.T, h metal.Home, name string) api.Device {
	t.Helper()
	e, err := h.ReadEndpoint()
	if err != nil {
		t.Fatal(err)
	}
	c, err := admin.Open(h)
	if err != nil {
		t.Fatal(err)
	}
	var d api.Device
	body := map[string]any{"hostname": name, "plan": "c3.small.x86", "metro": "da", "operating_system": "ubuntu_24_04", "tags": []string{"capp:cluster-id:herd", "capp:namespace:farm"}}
	if err := c.Do(t.Context(), http.MethodPost, "/projects/"+e.Project+"/devices", body, &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// drover prepares the program in a separate process.
func drover(h metal.Home, args ...string) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe", args...)
	cmd.Args[0] = "drover"
	cmd.Env = append(os.Environ(), "DROVER_METAL_HOME="+h.Dir)
	return cmd
}

// metals counts the processes that serve a home.
func metals(t *testing.T, h metal.Home) int {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, file := range files {
		if data, err := os.ReadFile(file); err == nil && strings.HasPrefix(string(data), "drover\x00metal\x00serve\x00--home\x00"+h.Dir+"\x00") {
			n++
		}
	}
	return n
}

func await(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !done(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never happened: %s", what)
		}
	}
}
