// Command build builds what a make target needs. It downloads everything concurrently, compiles one
// program after the other, and reports progress in one line.
//
//	go run ./hack/build drover payload          bin/drover, with Kubernetes inside
//	go run ./hack/build manager clusterctl      other programs in bin/
//	go run ./hack/build kube                    the default Kubernetes version, in the cache
//	go run ./hack/build --kubernetes all kube   every version that kube/kubernetes pins
//	go run ./hack/build --platform linux/arm64 --bin bin/arm64 drover payload
//	go run ./hack/build node                    programs and image of local machines
//	go run ./hack/build flux                    Flux controllers, in the cache
//	go run ./hack/build browser                 the browser of tests, from its Debian package
//	go run ./hack/build --platform linux/arm64 --flux-dir bin/arm64/flux flux
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/term"

	"github.com/drover-dev/drover/internal/kube/build"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:], os.Stderr)
	if errors.Is(err, flag.ErrHelp) {
		os.Exit(2)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "build:", err)
		os.Exit(1)
	}
}

// targetNames lists the targets in build order.
func targetNames() []string {
	return []string{"kube", "node", "flux", "browser", "drover", "payload", "manager", "clusterctl"}
}

type options struct {
	source     string
	kubernetes string
	platform   string
	bin        string
	fluxDir    string
	ldflags    string
	image      bool
	install    bool
	parent     int
	interval   time.Duration
	targets    []string
	out        io.Writer
	progress   *build.Progress
}

func run(ctx context.Context, args []string, out io.Writer) error {
	o := options{out: out}
	fs := flag.NewFlagSet("build", flag.ContinueOnError)
	fs.StringVar(&o.source, "source", "kube", "directory with the modules kubernetes, node, coredns and flux")
	fs.StringVar(&o.kubernetes, "kubernetes", "", "versions or minors, separated by spaces or commas, or all (default: what go.mod pins)")
	fs.StringVar(&o.platform, "platform", "", "`platform` of drover, manager, clusterctl, Kubernetes and Flux, such as linux/arm64 (default: this one)")
	fs.StringVar(&o.bin, "bin", "bin", "directory for drover, manager and clusterctl")
	fs.StringVar(&o.fluxDir, "flux-dir", "", "`directory` for copies of the Flux controllers (default: only in the cache)")
	fs.StringVar(&o.ldflags, "ldflags", "-s -w", "flags of the linker for drover and manager")
	fs.BoolVar(&o.image, "image", os.Geteuid() == 0, "also build the image that machines boot from; requires root")
	fs.BoolVar(&o.install, "install", os.Geteuid() == 0, "install missing Debian packages; requires root")
	fs.IntVar(&o.parent, "parent", 0, "stop when the process with this `pid` ends")
	fs.DurationVar(&o.interval, "interval", 0, "how often to report progress without a terminal")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if o.targets = fs.Args(); len(o.targets) == 0 {
		return fmt.Errorf("nothing to build: name one or more of %s", strings.Join(targetNames(), ", "))
	}
	for _, t := range o.targets {
		if !slices.Contains(targetNames(), t) {
			return fmt.Errorf("unknown target %q: name one or more of %s", t, strings.Join(targetNames(), ", "))
		}
	}
	return o.build(ctx)
}

// build runs the jobs of all targets.
func (o options) build(ctx context.Context) error {
	if o.parent != 0 {
		var stop func()
		ctx, stop = whileRunning(ctx, o.parent)
		defer stop()
	}
	o.progress = build.NewProgress(build.ProgressOptions{
		Out: o.out, Terminal: term.IsTerminal(int(os.Stderr.Fd())) && o.out == os.Stderr, Interval: o.interval,
	})
	jobs, err := o.jobs(ctx)
	if err != nil {
		return err
	}
	stop := o.progress.Start()
	defer stop()
	return build.Run(ctx, o.progress, jobs)
}

// whileRunning returns a context that ends with a process.
func whileRunning(ctx context.Context, pid int) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		defer cancel()
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
	}()
	return ctx, cancel
}

// jobs returns the jobs in build order: images are assembled while later programs compile.
func (o options) jobs(ctx context.Context) ([]build.Job, error) {
	makers := map[string]func(context.Context) ([]build.Job, error){
		"kube": o.kubeJobs, "node": o.nodeJobs, "flux": o.fluxJobs, "browser": o.browserJobs, "payload": o.payloadJobs,
		"drover": o.droverJobs, "manager": o.managerJobs, "clusterctl": o.clusterctlJobs,
	}
	var jobs []build.Job
	for _, name := range targetNames() {
		if !slices.Contains(o.targets, name) {
			continue
		}
		more, err := makers[name](ctx)
		if err != nil {
			return nil, err
		}
		jobs = append(jobs, more...)
	}
	return jobs, nil
}
