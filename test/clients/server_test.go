// Package clients tests the metal API with clients that others wrote, each in a module of its own
// so that none of them becomes a dependency of Drover.
package clients

import (
	"bytes"
	"encoding/json"
	"flag"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drover-dev/drover/internal/metal"
	"github.com/drover-dev/drover/internal/metal/driver/memory"
	"github.com/drover-dev/drover/internal/test/inputs"
)

// fast makes simulated machines ready in milliseconds.
const fast = 10000

// atOnce is the number of clients that run at once; they mostly wait for devices.
const atOnce = "16"

func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", atOnce); err != nil {
		log.Fatal(err)
	}
	m.Run()
}

// server is a metal API of its own for one test, with one device in the default project.
type server struct {
	url     string
	admin   string
	project string
	token   string
}

func newServer(t *testing.T) server {
	t.Helper()
	home := metal.Home{Dir: t.TempDir()}
	s, err := metal.Open(t.Context(), metal.Options{Home: home, Driver: memory.New, DriverName: "memory", Speed: fast})
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(s.Handler())
	t.Cleanup(func() {
		s.EndWaits()
		web.Close()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	out := server{url: web.URL}
	if out.project, err = s.DefaultProject(); err != nil {
		t.Fatal(err)
	}
	if out.token, err = home.Token(out.project); err != nil {
		t.Fatal(err)
	}
	if out.admin, err = home.AdminToken(); err != nil {
		t.Fatal(err)
	}
	out.order(t)
	return out
}

// order creates a device, so that there are events.
func (s server) order(t *testing.T) {
	t.Helper()
	body, err := json.Marshal(map[string]string{"hostname": "first", "plan": "c3.small.x86", "metro": "da", "operating_system": "ubuntu_24_04"})
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+"/projects/"+s.project+"/devices", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Auth-Token", s.token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusCreated {
		t.Fatalf("ordering a device: %s", resp.Status)
	}
}

// compile compiles the tests of a package in the module of a client.
func compile(t *testing.T, module, pkg string) string {
	t.Helper()
	inputs.DependOn(t, module)
	binary := filepath.Join(t.TempDir(), "client.test")
	cmd := exec.CommandContext(t.Context(), "go", "test", "-c", "-o", binary, pkg)
	cmd.Dir = module
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("compiling %s: %v\n%s", pkg, err, out)
	}
	return binary
}

// runTest runs one test of a binary in a process of its own, so that a panic ends only that test.
// It returns the test's output and whether it passed.
func runTest(t *testing.T, binary, name string, env ...string) (string, bool) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), binary, "-test.run=^"+name+"$", "-test.v", "-test.timeout=2m")
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	return string(out), err == nil && strings.Contains(string(out), "--- PASS: "+name)
}

// testsOf lists the tests of a binary.
func testsOf(t *testing.T, binary, pattern string) []string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), binary, "-test.list="+pattern).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(out))
}
