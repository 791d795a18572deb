package endpoint

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"
)

// cluster is the API server of all agents of a test.
type cluster struct {
	mu      sync.Mutex
	version int
	holder  string
	down    map[string]bool
	nodes   map[string]Peers
}

// seat is the cluster as one agent reaches it.
type seat struct {
	*cluster

	name string
}

var errDown = errors.New("down")

func (s seat) lease(context.Context) (Lease, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.current(), s.failure()
}

func (s seat) write(_ context.Context, holder string) (Lease, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.failure(); err != nil {
		return Lease{}, err
	}
	s.version++
	s.holder = holder
	return s.current(), nil
}

func (s seat) peers(_ context.Context, name string) (Peers, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, ok := s.nodes[name]
	if !ok {
		return Peers{}, errDown
	}
	return p, s.failure()
}

func (s seat) failure() error {
	if s.down[s.name] {
		return errDown
	}
	return nil
}

func (s seat) current() Lease {
	if s.version == 0 {
		return Lease{}
	}
	return Lease{Holder: s.holder, Version: string(rune('0' + s.version%1000))}
}

func (c *cluster) set(change func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change()
}

// network connects the links of agents.
type network struct {
	mu     sync.Mutex
	agents map[string]*Agent
	has    []string
	story  []string // who had the address, in order
}

// cable is the link of one agent.
type cable struct {
	*network

	name string
}

func (w cable) keep(int) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !slices.Contains(w.has, w.name) {
		w.has, w.story = append(w.has, w.name), append(w.story, w.name)
	}
	return nil
}

func (w cable) drop() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.has = slices.DeleteFunc(w.has, func(n string) bool { return n == w.name })
	return nil
}

func (w cable) probe() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if slices.ContainsFunc(w.has, func(n string) bool { return n != w.name }) {
		w.agents[w.name].hear()
	}
	return nil
}

func (w cable) announce() error { return nil }

func (n *network) holders() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.has)
}

type agents struct {
	*cluster
	*network

	t    *testing.T
	stop map[string]func()
}

func newAgents(t *testing.T, names ...string) *agents {
	a := &agents{
		t: t, stop: map[string]func(){}, network: &network{agents: map[string]*Agent{}},
		cluster: &cluster{down: map[string]bool{}, nodes: map[string]Peers{}},
	}
	for _, name := range names {
		a.start(name, "")
	}
	return a
}

func (a *agents) start(name, founder string) {
	agent := newAgent(Options{Name: name, Founder: founder, Log: slog.New(slog.DiscardHandler)}, seat{a.cluster, name}, cable{a.network, name})
	a.network.mu.Lock()
	a.agents[name] = agent
	a.network.mu.Unlock()
	ctx, cancel := context.WithCancel(a.t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		agent.run(ctx)
	}()
	a.stop[name] = func() { cancel(); <-done }
	a.t.Cleanup(a.stop[name])
}

// await waits until exactly this agent has the address.
func (a *agents) await(name string) {
	a.t.Helper()
	deadline := time.Now().Add(time.Minute)
	for !slices.Equal(a.holders(), []string{name}) {
		if time.Now().After(deadline) {
			a.t.Fatalf("holders %q, want %q", a.holders(), name)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func TestAgentTakesOverFromOneWithoutAPIServer(t *testing.T) {
	t.Parallel()
	a := newAgents(t, "a")
	a.await("a")
	a.start("b", "")
	a.set(func() { a.down["a"] = true })
	a.await("b")
	a.set(func() { a.down["a"] = false })
	a.stop["b"]()
	a.await("a")
}

func TestAgentHandsOverWhenItsNodeIsDrained(t *testing.T) {
	t.Parallel()
	a := newAgents(t, "a")
	a.await("a")
	a.start("b", "")
	a.set(func() {
		a.nodes["a"], a.nodes["b"] = Peers{Others: 1, Able: 1, Draining: true}, Peers{Others: 1}
	})
	a.await("b")
}

func TestAgentThatStopsFreesTheLease(t *testing.T) {
	t.Parallel()
	a := newAgents(t, "a")
	a.await("a")
	a.stop["a"]()
	if holders := a.holders(); len(holders) > 0 || a.holder != "" {
		t.Errorf("holders %q and Lease of %q after the agent stopped", holders, a.holder)
	}
}

func TestOnlyMachineKeepsTheAddressWithoutItsAPIServer(t *testing.T) {
	t.Parallel()
	a := newAgents(t)
	a.nodes["a"] = Peers{}
	a.start("a", "")
	a.await("a")
	time.Sleep(2 * refresh) // The nodes are read, and the Lease renewed since.
	a.set(func() { a.down["a"] = true })
	time.Sleep(GiveUp + refresh)
	if got := a.story; !slices.Equal(got, []string{"a"}) || len(a.holders()) != 1 {
		t.Errorf("the address was on %q, and is on %q", got, a.holders())
	}
}

func TestFounderHasTheAddressBeforeThereIsAnAPIServer(t *testing.T) {
	t.Parallel()
	founder := filepath.Join(t.TempDir(), "founder")
	if err := os.WriteFile(founder, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	testFounder(t, founder, func() {})
}

func TestMachineMayBecomeTheFounderAfterItsAgentHasStarted(t *testing.T) {
	t.Parallel()
	founder := filepath.Join(t.TempDir(), "founder")
	testFounder(t, founder, func() {
		if err := os.WriteFile(founder, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	})
}

// testFounder starts an agent without an API server, and calls started then.
func testFounder(t *testing.T, founder string, started func()) {
	t.Helper()
	a := newAgents(t)
	a.down["a"] = true
	a.start("a", founder)
	started()
	a.await("a")
	a.set(func() { a.down["a"] = false })
	for _, err := os.Stat(founder); err == nil; _, err = os.Stat(founder) {
		time.Sleep(10 * time.Millisecond)
	}
	a.set(func() { a.down["a"] = true })
	deadline := time.Now().Add(time.Minute)
	for len(a.holders()) > 0 {
		if time.Now().After(deadline) {
			t.Fatal("a founder with a Lease keeps the address without renewals")
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func TestAgentYieldsToAMachineWithoutAgent(t *testing.T) {
	t.Parallel()
	a := newAgents(t, "a")
	a.await("a")
	older := cable{a.network, "older"}
	_ = older.keep(0) // Metal assigned the address to it.
	a.await("older")
	_ = older.drop()
	a.await("a")
}
