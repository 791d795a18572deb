package main

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/drover-dev/drover/internal/test/clustertest"
)

// probeInterval is the resolution of outages, and observeInterval that of holders.
const (
	probeInterval   = 50 * time.Millisecond
	observeInterval = 10 * time.Millisecond
)

// failure is something that happens to the machine with the endpoint, and how it is undone.
type failure struct {
	name  string
	begin func(ctx context.Context, m *benchMachine) error
	end   func(ctx context.Context, m *benchMachine) error
}

func (b *bench) endpointFailures() []failure {
	return []failure{
		{"machine killed", killMachine, b.startMachine},
		{"network cut", cutNetwork, restoreNetwork},
		{"API server hangs", stopAPIServer, continueAPIServer},
	}
}

// measureEndpoint breaks the machine that holds the endpoint of three control plane machines, while
// there is no management plane.
func measureEndpoint(ctx context.Context, b *bench) error {
	c, began, err := b.localCluster(ctx, "endpoint", threeControlPlanes, 0)
	if err != nil {
		return err
	}
	if err := await(ctx, "three control planes", func() bool { return healthy(ctx, c) }); err != nil {
		return err
	}
	row("three control planes healthy", "%5.1f s", time.Since(began).Seconds())
	_, api, err := endpoint(ctx, c)
	if err != nil {
		return err
	}
	p, err := b.controlPlane(ctx, c, api)
	if err != nil {
		return err
	}
	if _, err := b.run(ctx, "down"); err != nil {
		return err
	}
	for _, f := range b.endpointFailures() {
		if err := p.measure(ctx, f, b.rounds); err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
	}
	if _, err := b.run(ctx, "up", "--metal", "local"); err != nil {
		return err
	}
	_, err = b.run(ctx, "kubectl", "delete", "clusters.cluster.x-k8s.io", c.Name, "--timeout=5m")
	return err
}

// controlPlane is the machines of a cluster as the host sees them.
type controlPlane struct {
	address, api string
	machines     []*benchMachine
}

func (b *bench) controlPlane(ctx context.Context, c *clustertest.Cluster, api string) (*controlPlane, error) {
	address, _, _ := strings.Cut(strings.TrimPrefix(api, "https://"), ":")
	p := &controlPlane{address: address, api: api}
	for _, m := range c.Machines(ctx) {
		one := &benchMachine{home: b.metalHome(), id: strings.TrimPrefix(m.Spec.ProviderID, "equinixmetal://")}
		for _, a := range m.Status.Addresses {
			if strings.HasPrefix(a.Address, "198.") && a.Address != address {
				one.address = a.Address
			}
		}
		if one.address == "" {
			return nil, fmt.Errorf("machine %q has no address", m.Name)
		}
		p.machines = append(p.machines, one)
	}
	return p, nil
}

// measure repeats a failure and prints the median of the outages.
func (p *controlPlane) measure(ctx context.Context, f failure, rounds int) error {
	var outages []float64
	var twice time.Duration
	for range rounds {
		if err := await(ctx, "three API servers", func() bool { return p.ready(ctx) }); err != nil {
			return err
		}
		outage, overlap, err := p.round(ctx, f)
		if err != nil {
			return err
		}
		outages, twice = append(outages, outage.Seconds()), max(twice, overlap)
	}
	overlap := "never two holders"
	if twice > 0 {
		overlap = fmt.Sprintf("two holders for up to %d ms", twice.Milliseconds())
	}
	row(f.name, "%4.1f s until the API answers (median of %d: %s), %s", median(outages), rounds, seconds(outages), overlap)
	return nil
}

// seconds formats figures in the order in which they were measured.
func seconds(all []float64) string {
	words := make([]string, 0, len(all))
	for _, one := range all {
		words = append(words, fmt.Sprintf("%.1f", one))
	}
	return strings.Join(words, " ")
}

// round breaks the holder once, and repairs it.
func (p *controlPlane) round(ctx context.Context, f failure) (outage, overlap time.Duration, err error) {
	holder := p.holder()
	if holder == nil {
		return 0, 0, fmt.Errorf("no machine has address %s", p.address)
	}
	observing, stop := context.WithCancel(ctx)
	var observer sync.WaitGroup
	observer.Go(func() { overlap = p.observe(observing) })
	began := time.Now()
	if err = f.begin(ctx, holder); err == nil {
		err = p.awaitAnswer(ctx, began)
		outage = time.Since(began)
	}
	if after := f.end(ctx, holder); err == nil {
		err = after
	}
	if err == nil {
		err = wait(ctx, 5*time.Second) // The former holder may believe that it still is.
	}
	stop()
	observer.Wait()
	return outage, overlap, err
}

// awaitAnswer returns when a request succeeds that was sent after the failure. A request is sent at
// every interval, whether the last one has returned or not.
func (p *controlPlane) awaitAnswer(ctx context.Context, began time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	answered := make(chan struct{}, 1)
	tick := time.NewTicker(probeInterval)
	defer tick.Stop()
	for {
		select {
		case <-answered:
			return nil
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w", p.api, ctx.Err())
		case <-tick.C:
			if time.Since(began) < 2*probeInterval {
				continue
			}
			go func() {
				if answers(ctx, newProbe(), p.api) {
					select {
					case answered <- struct{}{}:
					default:
					}
				}
			}()
		}
	}
}

// ready reports whether the API server of each machine answers with an etcd that has quorum, and
// one of them has the endpoint.
func (p *controlPlane) ready(ctx context.Context) bool {
	for _, m := range p.machines {
		if !answers(ctx, newProbe(), "https://"+m.address+":6443/readyz") {
			return false
		}
	}
	return p.holder() != nil && answers(ctx, newProbe(), p.api)
}
