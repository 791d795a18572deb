// Command node builds what makes a local machine a Kubernetes node, or finds
// that it is there already: containerd, runc, CNI plugins, CoreDNS and pause
// from the modules kube/node and kube/coredns, the agent of the network for Pods
// from cmd/cni, and the image that machines boot from.
//
//	go run ./hack/node                       programs, and the image for the default Kubernetes
//	go run ./hack/node --kubernetes v1.35.4  the image for another one
//	go run ./hack/node --image=false         programs only
//	go run ./hack/node --install=false       never install Debian packages that are missing
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/term"

	"github.com/drover-dev/drover/internal/kube/build"
	"github.com/drover-dev/drover/internal/kube/node"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:], os.Stderr)
	if errors.Is(err, flag.ErrHelp) {
		os.Exit(2)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "node:", err)
		os.Exit(1)
	}
}

type options struct {
	source     string
	kubernetes string
	image      bool
	install    bool
	out        io.Writer
}

func run(ctx context.Context, args []string, out io.Writer) error {
	o := options{out: out}
	fs := flag.NewFlagSet("node", flag.ContinueOnError)
	fs.StringVar(&o.source, "source", "kube", "directory with the modules node and coredns")
	fs.StringVar(&o.kubernetes, "kubernetes", "", "version of the image (default: Drover's own)")
	fs.BoolVar(&o.image, "image", os.Geteuid() == 0, "also make the image that machines boot from; needs root")
	fs.BoolVar(&o.install, "install", os.Geteuid() == 0, "install Debian packages that are missing; needs root")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if err := o.ensurePackages(ctx); err != nil {
		return err
	}
	if err := o.programs(ctx); err != nil {
		return err
	}
	if !o.image {
		return nil
	}
	return o.makeImage(ctx)
}

// programs compiles what the cache lacks.
func (o options) programs(ctx context.Context) error {
	start := time.Now()
	b := build.Builder{Progress: o.out, Terminal: term.IsTerminal(int(os.Stderr.Fd()))}
	all, err := targets(o.source)
	if err != nil {
		return err
	}
	var parts []node.Part
	for _, t := range all {
		key, err := b.Key(ctx, []build.Target{t})
		if err != nil {
			return err
		}
		parts = append(parts, node.Part{Key: key, Compile: func(ctx context.Context, dir string) error { return b.Compile(ctx, t, dir) }})
	}
	c, err := node.DefaultCache()
	if err != nil {
		return err
	}
	programs, err := c.MakePrograms(ctx, parts)
	if err != nil {
		return err
	}
	fmt.Fprintf(o.out, "programs of a node: %s (%s)\n", programs.Dir, time.Since(start).Round(10*time.Millisecond))
	return nil
}

func (o options) makeImage(ctx context.Context) error {
	start := time.Now()
	b, err := node.NewBuilder(o.kubernetes, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	fmt.Fprintf(o.out, "machine image for Kubernetes %s: making it if it is not there\n", b.Kube.Version)
	image, err := b.Image(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(o.out, "machine image for Kubernetes %s: %s (%s)\n", image.Kubernetes, image.Dir, time.Since(start).Round(10*time.Millisecond))
	return nil
}

// targets are the programs, with the versions that they report.
func targets(source string) ([]build.Target, error) {
	if _, err := os.Stat(source); err != nil {
		return nil, fmt.Errorf("finding the source: %w: run this in the root of the checkout, or give --source", err)
	}
	module := filepath.Join(source, "node")
	versions, err := requirements(filepath.Join(module, "go.mod"))
	if err != nil {
		return nil, err
	}
	const (
		containerd = "github.com/containerd/containerd/v2"
		runc       = "github.com/opencontainers/runc"
		plugins    = "github.com/containernetworking/plugins"
	)
	strip := func(settings ...string) string {
		flags := "-ldflags=-s -w"
		for _, s := range settings {
			flags += " -X " + s
		}
		return flags
	}
	return []build.Target{
		{
			Label: "containerd and CNI plugins", Source: module,
			Packages: []string{
				containerd + "/cmd/containerd", containerd + "/cmd/containerd-shim-runc-v2", containerd + "/cmd/ctr",
				plugins + "/plugins/main/bridge", plugins + "/plugins/main/loopback", plugins + "/plugins/ipam/host-local",
				plugins + "/plugins/main/ptp", plugins + "/plugins/meta/portmap", "./pause",
			},
			Flags: []string{
				"-tags=no_btrfs,no_zfs,no_devmapper",
				strip(containerd+"/version.Version="+versions[containerd], plugins+"/pkg/utils/buildversion.BuildVersion="+versions[plugins]),
			},
		},
		{
			Label: "runc", Source: module, Packages: []string{runc}, C: true,
			Flags: []string{
				"-tags=seccomp,netgo,osusergo",
				strip("main.version="+strings.TrimPrefix(versions[runc], "v")) + " -linkmode=external -extldflags=-static",
			},
		},
		{Label: "CoreDNS", Source: filepath.Join(source, "coredns"), Packages: []string{"."}, Flags: []string{strip()}},
		{Label: "network agent", Source: filepath.Dir(source), Packages: []string{"./cmd/cni"}, Flags: []string{strip()}, Crowded: true},
	}, nil
}

// requirements reads the versions that a module file pins.
func requirements(file string) (map[string]string, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	versions := map[string]string{}
	for line := range strings.Lines(string(data)) {
		fields := strings.Fields(strings.TrimPrefix(strings.TrimSpace(line), "require "))
		if len(fields) >= 2 && strings.HasPrefix(fields[1], "v") {
			versions[fields[0]] = fields[1]
		}
	}
	return versions, nil
}
