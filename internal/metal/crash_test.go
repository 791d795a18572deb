package metal

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/drover-dev/drover/internal/metal/api"
	"github.com/drover-dev/drover/internal/metal/driver"
	"github.com/drover-dev/drover/internal/metal/driver/memory"
	"github.com/drover-dev/drover/internal/metal/request"
)

// homeVariable makes the test binary serve the home that it names, so that tests can kill a metal
// service.
const homeVariable = "METAL_TEST_HOME"

func TestMain(m *testing.M) {
	if dir := os.Getenv(homeVariable); dir != "" {
		serveForever(Home{Dir: dir})
	}
	os.Exit(m.Run())
}

func serveForever(home Home) {
	s, err := Open(context.Background(), Options{Home: home, Driver: memory.New, DriverName: "memory", Speed: fast})
	if err != nil {
		fmt.Println("failed:", err)
		os.Exit(1)
	}
	fmt.Println(httptest.NewServer(s.Handler()).URL)
	select {}
}

// child is a metal service in a separate process.
type child struct {
	cmd *exec.Cmd
	url string
}

func startChild(t *testing.T, home Home) *child {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), homeVariable+"="+home.Dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || !strings.HasPrefix(line, "http") {
		t.Fatalf("the child said %q: %v", line, err)
	}
	return &child{cmd: cmd, url: strings.TrimSpace(line)}
}

// TestKilledMetalKeepsAcknowledgedWrites kills the service during many writes. Acknowledged writes
// must survive, others must exist once or not at all, and every device must end up active or gone.
func TestKilledMetalKeepsAcknowledgedWrites(t *testing.T) {
	home := Home{Dir: t.TempDir()}
	for round := range 3 {
		c := startChild(t, home)
		answered, deleted := writeUntilKilled(t, home, c, round)
		w := openWorld(t, Options{Home: home, Speed: fast})
		var out api.Devices
		w.must(http.StatusOK, "GET", "/projects/"+w.project+"/devices?per_page=1000", nil, &out)
		count := map[string]int{}
		for _, d := range out.Devices {
			count[d.Hostname]++
		}
		for host := range answered {
			if count[host] == 0 && !deleted[host] {
				t.Errorf("round %d: device %s was answered and is lost", round, host)
			}
		}
		for host, n := range count {
			if n > 1 {
				t.Errorf("round %d: device %s exists %d times", round, host, n)
			}
		}
		w.eventually("all devices are active or gone", func() bool {
			w.must(http.StatusOK, "GET", "/projects/"+w.project+"/devices?per_page=1000", nil, &out)
			for _, d := range out.Devices {
				if d.State != StateActive {
					return false
				}
			}
			return true
		})
		used := map[string]string{}
		for _, d := range out.Devices {
			for _, a := range d.IPAddresses {
				if other, taken := used[a.Address]; taken {
					t.Errorf("address %s is on %s and %s", a.Address, other, d.Hostname)
				}
				used[a.Address] = d.Hostname
			}
		}
		w.close()
	}
}

// writeUntilKilled creates and deletes devices until some requests succeeded, kills the child, and
// returns the successful ones.
func writeUntilKilled(t *testing.T, home Home, c *child, round int) (answered, deleted map[string]bool) {
	t.Helper()
	admin, err := home.AdminToken()
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, http: &httptest.Server{URL: c.url}, token: admin}
	var projects api.Projects
	w.must(http.StatusOK, "GET", "/projects", nil, &projects)
	project := projects.Projects[0].ID
	answered, deleted = map[string]bool{}, map[string]bool{}
	var mu sync.Mutex
	var done atomic.Bool
	var workers sync.WaitGroup
	for n := range 8 {
		workers.Go(func() {
			for i := 0; !done.Load(); i++ {
				host := fmt.Sprintf("r%d-w%d-%d", round, n, i)
				id, err := tryCreate(c.url, admin, project, host)
				if err != nil {
					return
				}
				mu.Lock()
				answered[host] = true
				enough := len(answered) > 40
				mu.Unlock()
				if i%4 == 3 && tryDelete(c.url, admin, id) {
					mu.Lock()
					deleted[host] = true
					mu.Unlock()
				}
				if enough && done.CompareAndSwap(false, true) {
					_ = c.cmd.Process.Kill()
				}
			}
		})
	}
	workers.Wait()
	_ = c.cmd.Wait()
	return answered, deleted
}

func tryCreate(url, token, project, host string) (string, error) {
	body := fmt.Sprintf(`{"hostname":%q,"plan":"c3.small.x86","metro":"da","operating_system":"x"}`, host)
	req, err := http.NewRequest(http.MethodPost, url+"/projects/"+project+"/devices", strings.NewReader(body))
	if err != nil {
		return "", err
	}
	req.Header.Set("X-Auth-Token", token)
	resp, err := (&http.Client{Timeout: 10 * time.Second}).Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	var d api.Device
	if err := request.Decode(resp.Body, &d); err != nil || resp.StatusCode != http.StatusCreated {
		return "", fmt.Errorf("answered %d: %w", resp.StatusCode, err)
	}
	return d.ID, nil
}

// tryDelete reports whether the device may be gone, also if the response was lost.
func tryDelete(url, token, id string) bool {
	req, err := http.NewRequest(http.MethodDelete, url+"/devices/"+id+"?force_delete=true", http.NoBody)
	if err != nil {
		return false
	}
	req.Header.Set("X-Auth-Token", token)
	if resp, err := (&http.Client{Timeout: 10 * time.Second}).Do(req); err == nil {
		_ = resp.Body.Close()
	}
	return true
}

func TestRestartResumesProvisioning(t *testing.T) {
	home := Home{Dir: t.TempDir()}
	first := newFake()
	w := openWorld(t, Options{Home: home, Driver: first.new, DriverName: "fake"})
	kept, removed, queued := w.create(order("kept")), w.create(order("removed")), w.create(order("queued"))
	w.eventually("all were asked for", func() bool { return first.count("ensure "+queued.ID) > 0 && first.count("ensure "+kept.ID) > 0 })
	first.sink.Report(kept.ID, driver.Event{Phase: driver.Running})
	first.mu.Lock()
	first.fail = func(call, _ string) error { return fmt.Errorf("the host is going down") }
	first.mu.Unlock()
	w.must(http.StatusNoContent, "DELETE", "/devices/"+removed.ID+"?force_delete=true", nil, nil)
	w.close()

	// The next process finds a known machine, one whose device is being deleted, an unknown one,
	// and misses one.
	second := newFake()
	second.machines[kept.ID] = driver.Machine{ID: kept.ID}
	second.machines[removed.ID] = driver.Machine{ID: removed.ID}
	second.machines["leftover"] = driver.Machine{ID: "leftover"}
	w = openWorld(t, Options{Home: home, Driver: second.new, DriverName: "fake"})
	w.eventually("the driver has exactly the devices that are wanted", func() bool {
		_, a := second.has(kept.ID)
		_, b := second.has(queued.ID)
		_, c := second.has(removed.ID)
		_, d := second.has("leftover")
		return a && b && !c && !d
	})
	w.awaitDeleted(removed.ID)
	if got := w.device(kept.ID).State; got != StateActive {
		t.Errorf("the device that was active is %s after a restart", got)
	}
}

func TestHomeIsLocked(t *testing.T) {
	home := Home{Dir: t.TempDir()}
	openWorld(t, Options{Home: home, Driver: quiet(), DriverName: "fake"})
	_, err := Open(t.Context(), Options{Home: home, Driver: quiet(), DriverName: "fake"})
	if err == nil || !strings.Contains(err.Error(), "in use by another metal") {
		t.Errorf("a second metal on one home: %v", err)
	}
}
