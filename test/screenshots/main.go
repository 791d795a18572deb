// Command screenshots takes the pictures of the page that the README and the guide show. The page
// is the real one; the fleet behind it is made up and in memory, so that the pictures are always
// alike.
//
//	go run ./test/screenshots docs/images
package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/drover-dev/drover/internal/model/scheme"
	"github.com/drover-dev/drover/internal/operate/inspect"
	"github.com/drover-dev/drover/internal/operate/web"
	"github.com/drover-dev/drover/internal/test/browsertest"
	"github.com/drover-dev/drover/internal/test/fleettest"
)

// picture is one file.
type picture struct {
	name, theme, path string
	// shown selects what must be there before the picture is taken.
	shown         string
	clusters      int
	state         func(int) fleettest.State
	width, height int
}

func pictures() []picture {
	const broken = "/clusters/drover/team-batch/fra-batch-01"
	return []picture{
		{"fleet-dark.png", "dark", "/", ".line.row", 50, fleettest.OnFire, 1280, 660},
		{"cluster-light.png", "light", broken, ".diagram .node", 50, fleettest.OnFire, 1280, 860},
	}
}

// more are pictures to look at, which no page shows.
func more() []picture {
	var out []picture
	for _, theme := range []string{"dark", "light"} {
		for _, n := range []int{0, 3, 50, 1000} {
			shown := ".line.row"
			if n == 0 {
				shown = ".empty"
			}
			out = append(out,
				picture{fmt.Sprintf("fleet-%s-%d-healthy.png", theme, n), theme, "/", shown, n, fleettest.Healthy, 1280, 720},
				picture{fmt.Sprintf("fleet-%s-%d-fire.png", theme, n), theme, "/", shown, n, fleettest.OnFire, 1280, 720})
		}
		out = append(out,
			picture{"addons-" + theme + ".png", theme, "/addons", ".matrix .line", 50, fleettest.OnFire, 1280, 720},
			picture{"machines-" + theme + ".png", theme, "/machines", ".machines .line", 50, fleettest.OnFire, 1280, 720},
			picture{"git-" + theme + ".png", theme, "/git", ".repository td", 50, fleettest.OnFire, 1280, 720},
			picture{"fleet-" + theme + "-wide.png", theme, "/", ".line.row", 50, fleettest.OnFire, 1600, 720},
			picture{"cluster-" + theme + "-whole.png", theme, "/clusters/drover/team-batch/fra-batch-01", ".diagram .node", 50, fleettest.OnFire, 1280, 2100},
			picture{"plane-" + theme + ".png", theme, "/plane", ".pairs", 50, fleettest.OnFire, 1280, 720},
			picture{"phone-git-" + theme + ".png", theme, "/git", ".repository td", 50, fleettest.OnFire, 390, 844},
			picture{"phone-" + theme + ".png", theme, "/", ".line.row", 50, fleettest.OnFire, 390, 844},
			picture{"groups-" + theme + ".png", theme, "/?group=namespace", ".line.group", 50, fleettest.OnFire, 1280, 720},
			picture{"phone-cluster-" + theme + ".png", theme, "/clusters/drover/team-batch/fra-batch-01", ".diagram .node", 50, fleettest.OnFire, 390, 1200})
	}
	return out
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "screenshots:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	all := pictures()
	if len(args) == 2 && args[1] == "all" {
		all = append(all, more()...)
	} else if len(args) != 1 {
		return errors.New("usage: go run ./test/screenshots DIRECTORY [all]")
	}
	if err := os.MkdirAll(args[0], 0o755); err != nil {
		return err
	}
	for _, p := range all {
		data, err := p.take(ctx)
		if err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		if err := os.WriteFile(filepath.Join(args[0], p.name), data, 0o644); err != nil {
			return err
		}
		fmt.Printf("%s: %d kB\n", p.name, len(data)/1000)
	}
	return nil
}

// plane lets informers list before they watch, as the client in memory requires.
type plane struct {
	client.WithWatch

	fleet fleettest.Fleet
}

// List adds what a client in memory doesn't return.
func (p plane) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	defer p.fleet.AddManagedFields(list)
	return p.WithWatch.List(ctx, list, options...)
}

// IsWatchListSemanticsUnSupported is asked by informers.
func (plane) IsWatchListSemanticsUnSupported() bool { return true }

// take serves a fleet and returns the picture of its page.
func (p picture) take(ctx context.Context) ([]byte, error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	kinds, err := scheme.New()
	if err != nil {
		return nil, err
	}
	fleet := fleettest.Fleet{Now: time.Now(), StateOf: p.state}
	stored := fake.NewClientBuilder().WithScheme(kinds).WithObjects(fleet.Objects(p.clusters)...).Build()
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	server, err := web.New(&inspect.Plane{Client: plane{stored, fleet}, Host: "https://mgmt.example.com:6443"}, listener)
	if err != nil {
		return nil, err
	}
	go func() { _ = server.Serve(ctx) }() // it ends with the picture
	b, err := browsertest.New(ctx, p.width, p.height)
	if err != nil {
		return nil, err
	}
	defer b.Close()
	if err := b.Theme(p.theme); err != nil {
		return nil, err
	}
	if err := b.Open(server.URL()); err != nil {
		return nil, err
	}
	if err := b.Await(`document.querySelector("main.fleet") && document.querySelector(".live.live")`); err != nil {
		return nil, err
	}
	if p.path != "/" {
		if err := b.Open("http://" + listener.Addr().String() + p.path); err != nil {
			return nil, err
		}
	}
	if err := b.Await(`document.querySelector(` + "`" + p.shown + "`" + `) && document.querySelector(".live.live")`); err != nil {
		return nil, err
	}
	return b.Screenshot()
}
