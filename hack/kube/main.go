// Command kube builds the Kubernetes binaries that Drover runs and tests with,
// or finds that they are there already.
//
//	go run ./hack/kube                          the default version
//	go run ./hack/kube --version 1.35           another one that kube/kubernetes pins
//	go run ./hack/kube --all                    every one of them
//	go run ./hack/kube --print-dir              also print the directory, for scripts
//	go run ./hack/kube payload --into FILE      put the binary inside an executable
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"golang.org/x/term"

	"github.com/drover-dev/drover/internal/kube/build"
	"github.com/drover-dev/drover/internal/kube/cache"
	"github.com/drover-dev/drover/internal/kube/payload"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:], os.Stdout)
	if errors.Is(err, flag.ErrHelp) {
		os.Exit(2)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "kube:", err)
		os.Exit(1)
	}
}

type options struct {
	stdout   io.Writer
	source   string
	versions string
	all      bool
	printDir bool
	into     string
}

func run(ctx context.Context, args []string, stdout io.Writer) error {
	o := options{stdout: stdout}
	fs := flag.NewFlagSet("kube", flag.ContinueOnError)
	fs.StringVar(&o.source, "source", "kube/kubernetes", "directory with the source and its module files")
	fs.StringVar(&o.versions, "version", "", "versions or minors to build, separated by spaces or commas (default: what go.mod pins)")
	if len(args) > 0 && args[0] == "payload" {
		fs.StringVar(&o.into, "into", "", "executable to put the binary into")
		if err := fs.Parse(args[1:]); err != nil {
			return err
		}
		return o.attach(ctx)
	}
	fs.BoolVar(&o.all, "all", false, "build every version")
	fs.BoolVar(&o.printDir, "print-dir", false, "print the directory of each binary to standard output")
	if err := fs.Parse(args); err != nil {
		return err
	}
	return o.build(ctx)
}

func (o options) build(ctx context.Context) error {
	b, err := o.builder()
	if err != nil {
		return err
	}
	releases, err := o.releases(ctx, b)
	if err != nil {
		return err
	}
	for _, r := range releases {
		e, err := ensure(ctx, b, r)
		if err != nil {
			return err
		}
		if o.printDir {
			fmt.Fprintln(o.stdout, e.Dir)
		}
	}
	return nil
}

func (o options) attach(ctx context.Context) error {
	if o.into == "" {
		return errors.New("payload needs --into FILE, the executable to put the binary into")
	}
	b, err := o.builder()
	if err != nil {
		return err
	}
	releases, err := o.releases(ctx, b)
	if err != nil {
		return err
	}
	if len(releases) != 1 {
		return fmt.Errorf("an executable carries one version, not %d", len(releases))
	}
	e, err := ensure(ctx, b, releases[0])
	if err != nil {
		return err
	}
	compressed, err := e.Compressed(ctx, payload.Compress)
	if err != nil {
		return err
	}
	return payload.Attach(o.into, compressed, payload.Header{Version: e.Version, Key: e.Key, SHA256: e.SHA256, Size: e.Size})
}

func (o options) builder() (build.Builder, error) {
	if _, err := os.Stat(o.source); err != nil {
		return build.Builder{}, fmt.Errorf("finding the source: %w: run this in the root of the checkout, or give --source", err)
	}
	c, err := cache.Default()
	if err != nil {
		return build.Builder{}, err
	}
	terminal := term.IsTerminal(int(os.Stderr.Fd()))
	return build.Builder{Source: o.source, Cache: c, Progress: os.Stderr, Terminal: terminal}, nil
}

// releases returns those that the flags ask for.
func (o options) releases(ctx context.Context, b build.Builder) ([]build.Release, error) {
	known, err := b.Releases(ctx)
	if err != nil || o.all {
		return known, err
	}
	wanted := strings.FieldsFunc(o.versions, func(c rune) bool { return c == ' ' || c == ',' })
	if len(wanted) == 0 {
		wanted = []string{""}
	}
	var chosen []build.Release
	for _, w := range wanted {
		r, err := build.Select(known, w)
		if err != nil {
			return nil, err
		}
		chosen = append(chosen, r)
	}
	return chosen, nil
}

func ensure(ctx context.Context, b build.Builder, r build.Release) (cache.Entry, error) {
	start := time.Now()
	e, err := b.Build(ctx, r)
	if err != nil {
		return e, err
	}
	fmt.Fprintf(os.Stderr, "%s: %s (%d MiB, %s)\n", r, e.Binary(), e.Size>>20, time.Since(start).Round(10*time.Millisecond))
	return e, nil
}
