package endpoint

import (
	"context"
	"log/slog"
	"net/netip"
	"os"
	"time"

	"k8s.io/utils/clock"
)

const (
	requestTimeout = 1500 * time.Millisecond
	// refresh is how often the kernel and the neighbors hear of an address that stays.
	refresh = time.Second
	// farewell is how long an agent that ends may take to hand over.
	farewell = 2 * time.Second
)

// Options are the options of an Agent.
type Options struct {
	// Name is the name of the machine and its node.
	Name string
	// Address is the endpoint, and Link where machines share it.
	Address netip.Addr
	Link    string
	// Kubeconfig is that of an administrator of the cluster.
	Kubeconfig string
	// Founder is a file that exists while this machine initializes the cluster.
	Founder string
	Log     *slog.Logger
}

// server is the API server of the machine.
type server interface {
	lease(ctx context.Context) (Lease, error)
	write(ctx context.Context, holder string) (Lease, error)
	peers(ctx context.Context, name string) (Peers, error)
}

// wire is the link.
type wire interface {
	keep(seconds int) error
	drop() error
	probe() error
	announce() error
}

// Agent is the agent of a machine.
type Agent struct {
	Options

	server server
	wire   wire
	clock  clock.Clock
	state  *State

	results chan func(now time.Time)
	heard   chan struct{}

	busy, meeting bool // requests for the Lease and for the nodes are under way
	asked, met    time.Time
	has           bool      // this agent has put the address on the link
	granted       Grant     // what it did so for
	told          time.Time // when it told the neighbors last
	probed        time.Time
	checked       bool // what an earlier agent left on the link is dealt with
}

// Run runs an agent until the context ends, and hands the address over then.
func Run(ctx context.Context, o Options) error {
	s, err := openSegment(o.Link, o.Address)
	if err != nil {
		return err
	}
	defer s.close()
	a := newAgent(o, &api{kubeconfig: o.Kubeconfig, address: o.Address}, s)
	go s.hear(a.hear)
	o.Log.Info("watching the endpoint", "address", o.Address, "machine", o.Name)
	a.run(ctx)
	return s.drop()
}

func newAgent(o Options, s server, w wire) *Agent {
	_, err := os.Stat(o.Founder)
	return &Agent{
		Options: o, server: s, wire: w, clock: clock.RealClock{}, state: NewState(o.Name, err == nil),
		results: make(chan func(time.Time), 2), heard: make(chan struct{}, 1),
	}
}

// hear records that another machine has the address.
func (a *Agent) hear() {
	select {
	case a.heard <- struct{}{}:
	default:
	}
}

func (a *Agent) run(ctx context.Context) {
	var end <-chan time.Time
	stop := ctx.Done()
	for !a.over() {
		now := a.clock.Now()
		a.found()
		a.settle(now)
		a.look(now)
		a.ask(context.WithoutCancel(ctx), now)
		select {
		case <-a.clock.After(a.pause(now)):
		case result := <-a.results:
			result(a.clock.Now())
		case <-a.heard:
			a.conflict()
		case <-stop:
			stop, end = nil, a.clock.After(farewell)
			a.state.Stop()
		case <-end:
			return
		}
	}
}

// found notices that kubeadm initializes the cluster on this machine. The agent may have started
// before kubeadm.
func (a *Agent) found() {
	if !a.state.mayFound() {
		return
	}
	if _, err := os.Stat(a.Founder); err == nil {
		a.state.Found()
	}
}

// over reports whether there is nothing left to do.
func (a *Agent) over() bool { return a.state.stopping && !a.has && !a.busy && a.state.Freed() }

func (a *Agent) conflict() {
	if a.has {
		a.Log.Warn("another machine answers for the endpoint", "address", a.Address)
	}
	a.state.Heard()
}

// settle makes the link agree with the state.
func (a *Agent) settle(now time.Time) {
	holds := a.state.Holds(now)
	if !a.checked && a.state.seen {
		a.checked = true
		if !a.has && !a.state.isHolder() {
			a.drop() // The kernel would remove it a little later.
		}
	}
	switch {
	case holds:
		a.hold(now)
	case a.has:
		a.drop()
		a.has = false
		a.Log.Info("gave up the endpoint", "address", a.Address)
	}
}

func (a *Agent) drop() {
	if err := a.wire.drop(); err != nil {
		a.Log.Error("removing the endpoint failed", "error", err)
	}
}

// hold puts the address on the link once for each renewal, and tells the neighbors now and then. If
// this took so long that the machine may no longer have the address, the next call removes it.
func (a *Agent) hold(now time.Time) {
	late, grant := now.Sub(a.told) >= refresh, a.state.Grant()
	if !a.has || grant != a.granted || grant.Until.IsZero() && late {
		seconds := lifetime(grant, now)
		if seconds <= 0 {
			return // The next renewal grants more.
		}
		if err := a.wire.keep(seconds); err != nil {
			a.Log.Error("taking the endpoint failed", "error", err)
			return
		}
		a.granted = grant
	}
	if a.has && !late {
		return
	}
	if !a.has {
		a.Log.Info("took the endpoint", "address", a.Address)
	}
	a.has, a.told = true, now
	if err := a.wire.announce(); err != nil {
		a.Log.Error("announcing the endpoint failed", "error", err)
	}
}

// look asks whether another machine has the address.
func (a *Agent) look(now time.Time) {
	every := Period
	switch {
	case a.has:
		every = refresh
	case a.state.Due(a.asked, now).Sub(a.asked) <= silence:
		every = silence
	}
	if now.Sub(a.probed) < every {
		return
	}
	a.probed = now
	if err := a.wire.probe(); err == nil {
		a.state.Probed(now)
	}
}

// ask sends what is due: one request for the Lease at a time, and one for the nodes.
func (a *Agent) ask(ctx context.Context, now time.Time) {
	if !a.busy && !now.Before(a.state.Due(a.asked, now)) {
		a.busy, a.asked = true, now
		verb := a.state.Next(now)
		a.state.Asked(verb, now)
		a.settle(now) // before anything can happen that others see
		a.background(ctx, func(ctx context.Context) func(time.Time) { return a.request(ctx, verb, now) })
	}
	if !a.meeting && now.Sub(a.met) >= refresh {
		a.meeting, a.met = true, now
		a.background(ctx, a.meet)
	}
}

// background sends a request whose outcome is recorded by the loop.
func (a *Agent) background(ctx context.Context, send func(context.Context) func(time.Time)) {
	go func() {
		ctx, cancel := context.WithTimeout(ctx, requestTimeout)
		defer cancel()
		a.results <- send(ctx)
	}()
}

// request sends a request, and returns what to record.
func (a *Agent) request(ctx context.Context, verb Verb, began time.Time) func(now time.Time) {
	var lease Lease
	var err error
	switch verb {
	case Take:
		lease, err = a.server.write(ctx, a.Name)
	case Free:
		lease, err = a.server.write(ctx, "")
	default:
		lease, err = a.server.lease(ctx)
	}
	return func(now time.Time) {
		a.busy = false
		if err != nil {
			a.Log.Debug("a request failed", "request", verb, "error", err)
			a.state.Failed()
			return
		}
		founder := a.state.founder
		if verb == Read {
			a.state.Observe(lease, now)
		} else {
			a.state.Wrote(lease, began, now)
		}
		if founder && !a.state.founder {
			_ = os.Remove(a.Founder)
		}
	}
}

// meet reads the nodes of the control plane.
func (a *Agent) meet(ctx context.Context) func(now time.Time) {
	peers, err := a.server.peers(ctx, a.Name)
	return func(time.Time) {
		a.meeting = false
		if err == nil {
			a.state.Meet(peers)
		}
	}
}

// pause returns how long nothing is due.
func (a *Agent) pause(now time.Time) time.Duration {
	next := now.Add(Period)
	if due := a.state.Due(a.asked, now); !a.busy && due.Before(next) {
		next = due
	}
	if end := a.state.Grant().Until; a.has && !end.IsZero() && end.Before(next) {
		next = end
	}
	return max(next.Sub(now), 10*time.Millisecond)
}
