package plane

import (
	"context"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"
)

// listen subscribes to the signals that other commands send to a supervisor. It does so before the
// plane is ready: an unhandled signal would end it.
func (p *Plane) listen() <-chan os.Signal {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGHUP, usePacketAPI)
	return signals
}

// maintain renews certificates and handles signals until ctx ends.
func (p *Plane) maintain(ctx context.Context, signals <-chan os.Signal) {
	renewal := time.NewTicker(renewalPeriod)
	defer renewal.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-renewal.C:
			if err := p.renew(); err != nil {
				p.log.Error("Failed to renew certificates", "error", err)
			}
		case s := <-signals:
			p.handleSignal(s)
		}
	}
}

func (p *Plane) handleSignal(s os.Signal) {
	if s == usePacketAPI {
		p.renewPacket()
		return
	}
	p.log.Info("Restarting the API server to reload its files")
	p.child("kube-apiserver").restart()
}

func (p *Plane) child(name string) *child {
	i := slices.IndexFunc(p.children, func(c *child) bool { return c.Name == name })
	return p.children[i]
}
