package plane

import (
	"context"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"
)

// clockPeriod is how often the clock is checked for jumps, which make certificates invalid.
const clockPeriod = time.Minute

// listen subscribes to the signals that other commands send to a supervisor. It does so before the
// plane is ready: an unhandled signal would end it.
func (p *Plane) listen() <-chan os.Signal {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGHUP, usePacketAPI, useGitOps)
	return signals
}

// maintain renews certificates, handles signals and starts GitOps when it is needed, until ctx
// ends.
func (p *Plane) maintain(ctx context.Context, signals <-chan os.Signal, needsGitOps <-chan struct{}) {
	renewal, clock := time.NewTicker(renewalPeriod), time.NewTicker(clockPeriod)
	defer renewal.Stop()
	defer clock.Stop()
	checked := time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-renewal.C:
			p.tryRenew()
		case <-clock.C:
			now := time.Now()
			if clockJumped(now.Round(0).Sub(checked.Round(0)), now.Sub(checked)) {
				p.log.Info("The clock was set")
				p.tryRenew()
			}
			checked = now
		case <-needsGitOps:
			p.tryGitOps(ctx, "a FluxConfig")
		case s := <-signals:
			p.handleSignal(ctx, s)
		}
	}
}

func (p *Plane) tryRenew() {
	if err := p.renew(p.settings()); err != nil {
		p.log.Error("Failed to renew certificates", "error", err)
	}
}

// clockJumped reports whether the clock was set while a time passed that it measured as wall.
func clockJumped(wall, passed time.Duration) bool { return (wall - passed).Abs() > time.Minute }

func (p *Plane) handleSignal(ctx context.Context, s os.Signal) {
	switch s {
	case usePacketAPI:
		p.renewPacket()
	case useGitOps:
		p.tryGitOps(ctx, "`drover up --gitops`")
	default:
		p.log.Info("Restarting the API server to reload its files")
		p.child("kube-apiserver").restart()
	}
}

func (p *Plane) child(name string) *child {
	i := slices.IndexFunc(p.children, func(c *child) bool { return c.Name == name })
	return p.children[i]
}
