// Package metalbench measures a metal service with many devices: how fast it creates them, its
// latency while it has them, and the cost of lists. It returns figures without judging them. Start
// with Run.
package metalbench

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/drover-dev/drover/internal/metal"
	"github.com/drover-dev/drover/internal/metal/api"
	"github.com/drover-dev/drover/internal/metal/driver"
)

// instant makes simulated machines ready at once, so that only the API is measured.
const instant = 1e6

// Options configure a measurement.
type Options struct {
	Home    string
	Driver  driver.New
	Devices int
	Clients int
	// Each is the duration of each kind of call.
	Each time.Duration
}

// Figure is the measurement of one kind of call.
type Figure struct {
	Name        string
	Calls       int
	PerSecond   float64
	Median, P99 time.Duration
	Max         time.Duration
}

// String formats a figure for people.
func (f Figure) String() string {
	return fmt.Sprintf("%-34s %8.0f/s   median %8s   p99 %8s   max %8s", f.Name, f.PerSecond, round(f.Median), round(f.P99), round(f.Max))
}

func round(d time.Duration) time.Duration { return d.Round(10 * time.Microsecond) }

type bench struct {
	Options
	url     string
	project string
	token   string
	ids     []string
	client  *http.Client
}

// Run fills a metal service and measures it with a hundredth, a tenth and all of the devices, to
// show how cost depends on the size of the fleet.
func Run(ctx context.Context, o Options) ([]Figure, error) {
	home := metal.Home{Dir: o.Home}
	s, err := metal.Open(ctx, metal.Options{Home: home, Driver: o.Driver, DriverName: "bench", Speed: instant})
	if err != nil {
		return nil, err
	}
	defer s.Close()
	b := &bench{Options: o, client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: o.Clients}}}
	if b.project, err = s.DefaultProject(); err != nil {
		return nil, err
	}
	if b.token, err = home.Token(b.project); err != nil {
		return nil, err
	}
	server := httptest.NewServer(s.Handler())
	defer server.Close()
	b.url = server.URL
	return b.measure(ctx)
}

func (b *bench) measure(ctx context.Context) ([]Figure, error) {
	var out []Figure
	for _, n := range slices.Compact([]int{max(1, b.Devices/100), max(1, b.Devices/10), b.Devices}) {
		fill, err := b.fill(ctx, n)
		if err != nil {
			return nil, err
		}
		out = append(out, fill)
		if err := b.settle(ctx); err != nil {
			return nil, err
		}
		for _, kind := range b.kinds() {
			f, err := b.repeat(ctx, fmt.Sprintf("%s of %d", kind.name, n), kind.call)
			if err != nil {
				return nil, err
			}
			out = append(out, f)
		}
	}
	return out, nil
}

type kind struct {
	name string
	call func(n int) (method, path string, body any)
}

func (b *bench) kinds() []kind {
	devices := "/projects/" + b.project + "/devices"
	last := max(1, len(b.ids)/10)
	return []kind{
		{"get", func(n int) (string, string, any) { return "GET", "/devices/" + b.ids[n*7919%len(b.ids)], nil }},
		{"list, first page", func(int) (string, string, any) { return "GET", devices, nil }},
		{"list, last page", func(int) (string, string, any) { return "GET", fmt.Sprintf("%s?page=%d", devices, last), nil }},
		{"list, page of 100", func(int) (string, string, any) { return "GET", devices + "?per_page=100", nil }},
		{"find by tag", func(n int) (string, string, any) {
			return "GET", fmt.Sprintf("%s?tag=uid:%d", devices, n*7919%len(b.ids)), nil
		}},
		{"update", func(n int) (string, string, any) {
			return "PUT", "/devices/" + b.ids[n*7919%len(b.ids)], map[string]string{"description": fmt.Sprint(n)}
		}},
	}
}

// fill creates devices until there are n.
func (b *bench) fill(ctx context.Context, n int) (Figure, error) {
	have := len(b.ids)
	var mu sync.Mutex
	return b.run(ctx, fmt.Sprintf("create up to %d", n), n-have, func(i int) error {
		var d api.Device
		err := b.do(ctx, "POST", "/projects/"+b.project+"/devices", map[string]any{
			"hostname": fmt.Sprintf("host-%d", have+i), "plan": "c3.small.x86", "metro": "da", "operating_system": "ubuntu_22_04",
			"tags": []string{fmt.Sprintf("uid:%d", have+i), fmt.Sprintf("cluster:%d", (have+i)/3), "fleet"}, "userdata": "#cloud-config\n",
		}, &d)
		mu.Lock()
		b.ids = append(b.ids, d.ID)
		mu.Unlock()
		return err
	})
}

// settle waits until the last devices are active.
func (b *bench) settle(ctx context.Context) error {
	for _, id := range b.ids {
		for {
			var d api.Device
			if err := b.do(ctx, "GET", "/devices/"+id, nil, &d); err != nil {
				return err
			}
			if d.State == metal.StateActive {
				break
			}
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(10 * time.Millisecond):
			}
		}
	}
	return nil
}

// repeat repeats one kind of call for a while.
func (b *bench) repeat(ctx context.Context, name string, call func(int) (string, string, any)) (Figure, error) {
	end := time.Now().Add(b.Each)
	return b.run(ctx, name, 0, func(i int) error {
		if time.Now().After(end) {
			return io.EOF
		}
		method, path, body := call(i)
		return b.do(ctx, method, path, body, nil)
	})
}

// run makes calls from all clients concurrently: count of them, or until one returns io.EOF if
// count is 0.
func (b *bench) run(ctx context.Context, name string, count int, call func(int) error) (Figure, error) {
	var next atomic.Int64
	var mu sync.Mutex
	var times []time.Duration
	var failed error
	var clients sync.WaitGroup
	began := time.Now()
	for range b.Clients {
		clients.Go(func() {
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if count > 0 && i >= count {
					return
				}
				start := time.Now()
				err := call(i)
				took := time.Since(start)
				mu.Lock()
				if err == nil {
					times = append(times, took)
				} else if err != io.EOF { //nolint:errorlint // Never wrapped.
					failed = err
				}
				mu.Unlock()
				if err != nil {
					return
				}
			}
		})
	}
	clients.Wait()
	return figure(name, times, time.Since(began)), failed
}

func figure(name string, times []time.Duration, took time.Duration) Figure {
	f := Figure{Name: name, Calls: len(times), PerSecond: float64(len(times)) / took.Seconds()}
	if len(times) == 0 {
		return f
	}
	slices.Sort(times)
	f.Median, f.P99, f.Max = times[len(times)/2], times[len(times)*99/100], times[len(times)-1]
	return f
}

func (b *bench) do(ctx context.Context, method, path string, body, out any) error {
	var payload io.Reader
	if body != nil {
		data, err := json.Marshal(body)
		if err != nil {
			return err
		}
		payload = bytes.NewReader(data)
	}
	req, err := http.NewRequestWithContext(ctx, method, b.url+path, payload)
	if err != nil {
		return err
	}
	req.Header.Set("X-Auth-Token", b.token)
	resp, err := b.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode >= http.StatusBadRequest {
		return fmt.Errorf("%s %s responded with %d %s", method, path, resp.StatusCode, data)
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(data, out)
}
