package metal

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	"github.com/drover-dev/drover/internal/cli/ui"
	"github.com/drover-dev/drover/internal/metal"
	"github.com/drover-dev/drover/internal/metal/api"
	"github.com/drover-dev/drover/internal/metal/service"
)

func TestCount(t *testing.T) {
	for n, want := range map[int]string{0: "0 machines", 1: "1 machine", 2: "2 machines", 1000: "1000 machines"} {
		if got := Count(n); got != want {
			t.Errorf("%d: got %q, want %q", n, got, want)
		}
	}
}

func TestStatusLine(t *testing.T) {
	for want, s := range map[string]service.Status{
		"Stopped, driver local (local machines keep running; start it with `drover up`)": {Driver: "local"},
		"Not responding, driver memory: connection refused":                              {Driver: "memory", Running: true, Error: "connection refused"},
		"Running, driver memory, 1 machine, 12 MiB":                                      {Driver: "memory", Running: true, Machines: ptr.To(1), MemoryBytes: 12<<20 + 1},
		"Running, driver local, 0 machines, 0 MiB":                                       {Driver: "local", Running: true, Machines: ptr.To(0)},
	} {
		if got := StatusLine(s); got != want {
			t.Errorf("status %q, want %q", got, want)
		}
	}
}

func TestStatusTable(t *testing.T) {
	var out bytes.Buffer
	s := service.Status{Driver: "memory", Running: true, Machines: ptr.To(2), PID: 7}
	s.URL, s.Project, s.Home = "http://127.0.0.1:1", "p", "/h"
	if err := statusTable(&out, s); err != nil {
		t.Fatal(err)
	}
	want := "Metal     Running, driver memory, 2 machines, 0 MiB\nAPI       http://127.0.0.1:1\nProject   p\nHome      /h\nProcess   7\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
	out.Reset()
	s.Running = false
	if err := statusTable(&out, s); err != nil || strings.Contains(out.String(), "Process") {
		t.Errorf("a service that is stopped has a process (error %v):\n%s", err, out.String())
	}
}

func TestProjectTable(t *testing.T) {
	var out bytes.Buffer
	projects := []api.Project{{Name: "default", ID: "1", CreatedAt: api.At(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))}}
	if err := projectTable(&out, projects); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(strings.Fields(out.String()), " "); got != "NAME ID CREATED default 1 2026-01-02 03:04" {
		t.Errorf("table %q", got)
	}
}

func TestDrivers(t *testing.T) {
	if diff := cmp.Diff([]string{"local", "memory", "server"}, DriverNames()); diff != "" {
		t.Errorf("drivers (-want +got):\n%s", diff)
	}
	for _, name := range DriverNames() {
		if d, err := findDriver(name); err != nil || d == nil {
			t.Errorf("driver %q: error %v", name, err)
		}
	}
	for _, name := range []string{"", "Local", "ssh"} {
		if _, err := findDriver(name); err == nil || !strings.HasSuffix(err.Error(), "use local or memory or server") {
			t.Errorf("driver %q: error %v", name, err)
		}
	}
	if err := Usable("memory", metal.Home{Dir: "/nowhere"}); err != nil {
		t.Errorf("simulated machines need something of the host: %v", err)
	}
}

func TestNothingToPurge(t *testing.T) {
	var talk bytes.Buffer
	o := PurgeOptions{Home: metal.Home{Dir: t.TempDir() + "/none"}, Timeout: time.Minute}
	io := &ui.IO{Err: &talk}
	if err := o.Confirm(t.Context(), io); err != nil {
		t.Errorf("it asks about nothing: %v", err)
	}
	if err := o.Run(t.Context(), io); err != nil || talk.String() != "Nothing to remove: no metal service in "+o.Home.Dir+".\n" {
		t.Errorf("got output %q, error %v", talk.String(), err)
	}
}

func TestPurgeWithoutATerminalNeedsYes(t *testing.T) {
	h := metal.Home{Dir: t.TempDir()}
	if err := h.WriteEndpoint(metal.Endpoint{URL: "http://127.0.0.1:1", Driver: "memory"}); err != nil {
		t.Fatal(err)
	}
	o := PurgeOptions{Home: h}
	err := o.Confirm(t.Context(), &ui.IO{})
	if want := "removing " + h.Dir + " with its machines requires confirmation: use --yes"; err == nil || err.Error() != want {
		t.Errorf("error %v, want %q", err, want)
	}
	o.Yes = true
	if err := o.Confirm(t.Context(), &ui.IO{}); err != nil {
		t.Error(err)
	}
}

func TestNextStepsNameTheTokenFile(t *testing.T) {
	var talk bytes.Buffer
	h := metal.Home{Dir: "/h"}
	(&serveOptions{}).next(&ui.IO{Err: &talk}, h, metal.Endpoint{URL: "http://127.0.0.1:1", Driver: "memory", Project: "p"})
	for _, want := range []string{"http://127.0.0.1:1 with the memory driver", "METAL_API_URL=http://127.0.0.1:1/metal/v1", "METAL_PROJECT_ID=p", "cat " + h.TokenFile("p")} {
		if !strings.Contains(talk.String(), want) {
			t.Errorf("%q is not in:\n%s", want, talk.String())
		}
	}
}
