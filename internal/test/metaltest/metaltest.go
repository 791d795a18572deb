// Package metaltest runs a metal service with simulated machines for tests. Start with New.
package metaltest

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/drover-dev/drover/internal/metal"
	"github.com/drover-dev/drover/internal/metal/driver/memory"
)

// speed is the factor by which machines are faster than real ones.
const speed = 100

// Metal is a Packet API with a project.
type Metal struct {
	URL, Project string
	// Token is the project's token, Admin the administrator's.
	Token, Admin string
	// Home is the directory of the service.
	Home string
}

// New serves until the test ends.
func New(t testing.TB) Metal {
	t.Helper()
	home := metal.Home{Dir: t.TempDir()}
	server, err := metal.Open(t.Context(), metal.Options{Home: home, Driver: memory.New, DriverName: "memory", Speed: speed})
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(server.Handler())
	t.Cleanup(func() {
		web.Close()
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	m := Metal{URL: web.URL + "/metal/v1", Home: home.Dir}
	if m.Admin, err = home.AdminToken(); err != nil {
		t.Fatal(err)
	}
	m.Token = m.Admin
	var all struct{ Projects []struct{ ID string } }
	m.Get(t, "/projects", &all)
	m.Project = all.Projects[0].ID
	if m.Token, err = home.Token(m.Project); err != nil {
		t.Fatal(err)
	}
	return m
}

// Get reads from the API, with the project's token.
func (m Metal) Get(t testing.TB, path string, into any) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, m.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("X-Auth-Token", m.Token)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if err := json.NewDecoder(response.Body).Decode(into); err != nil {
		t.Fatalf("%s: %s: %v", path, response.Status, err)
	}
}

// Disk returns the userdata on the disk of a machine.
func (m Metal) Disk(t testing.TB, device string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(m.Home, "*", "disks", device))
	if err != nil || len(files) != 1 {
		t.Fatalf("the disk of %s is in %d files (%v)", device, len(files), err)
	}
	data, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// Left returns the number of devices and reserved addresses of the project.
func (m Metal) Left(t testing.TB) (devices, addresses int) {
	t.Helper()
	var d struct{ Devices []struct{ ID string } }
	var a struct {
		Addresses []struct{ Management bool } `json:"ip_addresses"`
	}
	m.Get(t, "/projects/"+m.Project+"/devices", &d)
	m.Get(t, "/projects/"+m.Project+"/ips?types=public_ipv4", &a)
	for _, ip := range a.Addresses {
		if !ip.Management {
			addresses++
		}
	}
	return len(d.Devices), addresses
}
