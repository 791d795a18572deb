// Command bench measures what Drover promises: how soon a plane is ready, its idle cost, how one
// manager compares with three, how cost grows with a fleet, and how soon each part recovers. It
// prints figures without judging them.
//
// A part is a file with a function, and a line in parts.
//
//	make bench                          # all of it
//	go run ./test/bench -only up,idle   # some parts
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// part is one measurement. Parts run in order on the same plane.
type part struct {
	name  string
	title string
	run   func(context.Context, *bench) error
}

var parts = []part{
	{"up", "Warm start to fully ready", measureUp},
	{"idle", "Idle plane: memory and CPU", measureIdle},
	{"managers", "One manager next to upstream's three", measureManagers},
	{"metal", "Metal with many devices: requests, and lists", measureMetal},
	{"fleet", "Clusters of one control plane and two workers on simulated machines", measureFleet},
	{"specs", "The same clusters from specs, next to plain Cluster API objects", measureSpecs},
	{"gitops", "Clusters from one Git repository on simulated machines", measureGitOps},
	{"addons", "Charts on eight API servers, next to a bare client", measureAddons},
	{"packages", "Packages from signed bundles on many clusters", measurePackages},
	{"local", "A cluster of two machines on this host", measureLocal},
	{"upgrade", "A minor version of Kubernetes: machines replaced, and upgraded in place", measureUpgrade},
	{"clusters", "A management cluster and a workload cluster, by command", measureClusters},
	{"failover", "Three control planes, the machine with the endpoint powered off", measureFailover},
	{"endpoint", "Three control planes without a management plane, the machine with the endpoint broken", measureEndpoint},
	{"etcd", "Three control plane machines, with etcd on them and on three machines of its own", measureEtcd},
	{"ui", "The page of 10 and of 1,000 clusters in a browser", measureUI},
	{"recovery", "SIGKILL of each component until all are ready again", measureRecovery},
}

// bench is shared by the parts.
type bench struct {
	drover string
	home   string
	work   string
	rounds int
	idle   time.Duration
	fleet  sizes
	// devices is the largest number of devices for metal.
	devices int
	// releases is the number of installed releases, and many the largest number for measuring
	// memory.
	releases sizes
	many     int
	herd     packageLoad
	// specs is the number of clusters created from specs.
	specs int
}

// sizes is a flag with numbers.
type sizes []int

func (s *sizes) String() string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint([]int(*s)), " ", ","), "[]")
}

// Set replaces the numbers.
func (s *sizes) Set(text string) error {
	*s = nil
	for word := range strings.SplitSeq(text, ",") {
		n, err := strconv.Atoi(word)
		if err != nil || n < 1 {
			return fmt.Errorf("invalid number %q", word)
		}
		*s = append(*s, n)
	}
	return nil
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run() error {
	only := flag.String("only", "", "measure these `parts` only, of "+names())
	b := &bench{fleet: sizes{50, 100, 200}, releases: sizes{104, 304}}
	flag.StringVar(&b.drover, "drover", "bin/drover", "the program to measure")
	flag.IntVar(&b.rounds, "rounds", 5, "how often to repeat parts that print a median")
	flag.DurationVar(&b.idle, "idle", time.Minute, "how long to observe an idle plane")
	flag.Var(&b.fleet, "fleet", "how many `clusters` the fleets have")
	flag.Var(&b.releases, "releases", "how many `releases` of add-ons are installed, multiples of the clusters")
	flag.IntVar(&b.many, "many-releases", 1000, "how many releases of add-ons memory is measured with, 0 for none")
	flag.IntVar(&b.herd.clusters, "package-clusters", 100, "how many clusters have packages")
	flag.IntVar(&b.herd.packages, "packages", 20, "how many packages each of them has")
	flag.DurationVar(&b.herd.idle, "package-idle", 5*time.Minute, "how long to observe idle packages")
	flag.IntVar(&b.specs, "specs", 100, "how many clusters are created from specs")
	flag.IntVar(&b.devices, "devices", 10000, "how many devices metal is measured with")
	flag.Parse()
	chosen, err := choose(*only)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()

	work, err := os.MkdirTemp("", "drover-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	b.work, b.home = work, filepath.Join(work, "home")
	if b.drover, err = filepath.Abs(b.drover); err != nil {
		return err
	}
	fmt.Fprintf(os.Stdout, "%d cores, %s/%s, %s\n", runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, cpuModel())
	defer b.remove(context.WithoutCancel(ctx))
	return b.measure(ctx, chosen)
}

func names() string {
	var all []string
	for _, p := range parts {
		all = append(all, p.name)
	}
	return strings.Join(all, ",")
}

// choose returns the named parts in their order.
func choose(only string) ([]part, error) {
	if only == "" {
		return parts, nil
	}
	wanted := strings.Split(only, ",")
	var chosen []part
	for _, p := range parts {
		if i := slices.Index(wanted, p.name); i >= 0 {
			chosen, wanted = append(chosen, p), slices.Delete(wanted, i, i+1)
		}
	}
	if len(wanted) > 0 {
		return nil, fmt.Errorf("unknown part %q: use one of %s", wanted[0], names())
	}
	return chosen, nil
}

func (b *bench) measure(ctx context.Context, chosen []part) error {
	for _, p := range chosen {
		fmt.Fprintf(os.Stdout, "\n%s\n", p.title)
		if err := p.run(ctx, b); err != nil {
			return fmt.Errorf("measuring %q: %w", p.name, err)
		}
	}
	return nil
}

// remove removes everything that was created.
func (b *bench) remove(ctx context.Context) {
	for _, args := range [][]string{{"down", "--purge"}, {"metal", "purge", "--yes"}} {
		if out, err := b.run(ctx, args...); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err, out)
		}
	}
}

func cpuModel() string {
	data, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(data)) {
		if name, ok := strings.CutPrefix(line, "model name"); ok {
			return strings.Trim(name, " \t:\n")
		}
	}
	return "unknown CPU"
}

// row prints one figure.
func row(name, format string, args ...any) {
	fmt.Fprintf(os.Stdout, "  %-44s %s\n", name, fmt.Sprintf(format, args...))
}
