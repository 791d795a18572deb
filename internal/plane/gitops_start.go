package plane

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/base/version"
	"github.com/drover-dev/drover/internal/kube/flux"
)

// useGitOps is the signal that makes a supervisor start GitOps.
const useGitOps = unix.SIGUSR2

const (
	// gitOpsTimeout bounds the start of GitOps on a running plane.
	gitOpsTimeout = time.Minute
	// gitOpsRetry is the time between attempts to start GitOps, or to watch FluxConfigs.
	gitOpsRetry = 30 * time.Second
)

// fluxConfigs is the resource that needs GitOps.
var fluxConfigs = anywherev1.GroupVersion.WithResource("fluxconfigs")

// settings returns the configuration as it is now.
func (p *Plane) settings() Config {
	c := p.config
	c.GitOps = p.gitOps.Load()
	return c
}

// watchFluxConfigs returns a channel that receives while there is a FluxConfig and the plane runs
// without GitOps. It is nil if GitOps is on already or was turned off.
func (p *Plane) watchFluxConfigs(ctx context.Context) <-chan struct{} {
	if p.gitOps.Load() || p.config.GitOpsOff {
		return nil
	}
	needed := make(chan struct{})
	go p.requestGitOps(ctx, needed)
	return needed
}

// requestGitOps sends while there is a FluxConfig, until GitOps is on: starting it may fail.
func (p *Plane) requestGitOps(ctx context.Context, needed chan<- struct{}) {
	for ctx.Err() == nil && !p.gitOps.Load() {
		if err := p.awaitFluxConfig(ctx); err == nil {
			select {
			case needed <- struct{}{}:
			case <-ctx.Done():
			}
		} else if ctx.Err() == nil {
			p.log.Error("Failed to watch FluxConfigs", "error", err)
		}
		select {
		case <-time.After(gitOpsRetry):
		case <-ctx.Done():
		}
	}
}

// awaitFluxConfig returns when a FluxConfig exists.
func (p *Plane) awaitFluxConfig(ctx context.Context) error {
	client, err := metadata.NewForConfig(p.home.clientConfig(p.config))
	if err != nil {
		return err
	}
	for {
		all, err := client.Resource(fluxConfigs).List(ctx, metav1.ListOptions{Limit: 1})
		if err != nil || len(all.Items) > 0 {
			return err
		}
		events, err := client.Resource(fluxConfigs).Watch(ctx, metav1.ListOptions{ResourceVersion: all.ResourceVersion})
		if err != nil {
			return err
		}
		if appears(events) {
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// appears reports whether an object appears before the watch ends.
func appears(events watch.Interface) bool {
	defer events.Stop()
	for e := range events.ResultChan() {
		if e.Type == watch.Added || e.Type == watch.Modified {
			return true
		}
		if e.Type == watch.Error {
			return false
		}
	}
	return false
}

// tryGitOps starts GitOps unless it is on.
func (p *Plane) tryGitOps(ctx context.Context, cause string) {
	if p.gitOps.Load() {
		return
	}
	p.log.Info("Starting GitOps", "for", cause)
	ctx, cancel := context.WithTimeout(ctx, gitOpsTimeout)
	defer cancel()
	if err := p.startGitOps(ctx); err != nil {
		p.log.Error("Failed to start GitOps", "error", err)
	}
}

// startGitOps starts the Flux controllers on a running plane, and restarts the manager with GitOps.
// The next start of the plane keeps that. It can be repeated after a failure: nothing runs before
// everything that can fail is done.
func (p *Plane) startGitOps(ctx context.Context) error {
	programs, err := flux.Find()
	if err != nil {
		return err
	}
	c := p.settings()
	c.GitOps, c.GitOpsOff = true, false
	if err := p.renew(c); err != nil {
		return err
	}
	if err := writeJSON(p.home.configFile(), c); err != nil {
		return err
	}
	p.flux = programs
	if _, err := p.launchFlux(ctx, nil); err != nil {
		return err
	}
	p.gitOps.Store(true)
	p.writeState()
	p.child("manager").restart()
	return nil
}

// UseGitOps makes a running plane start GitOps, and returns once it runs.
func UseGitOps(ctx context.Context, h Home) error {
	state, err := h.readState()
	if err != nil {
		return fmt.Errorf("finding the supervisor: %w", err)
	}
	if state.GitOps {
		return nil
	}
	if running := version.Get().Version; state.Drover != running {
		return fmt.Errorf("the embedded plane runs Drover %s, but this is %s: run `drover down` before you turn on GitOps", state.Drover, running)
	}
	if _, err := flux.Find(); err != nil {
		return err
	}
	before := state.component("manager").PID
	if err := state.Supervisor.Signal(useGitOps); err != nil {
		return fmt.Errorf("requesting GitOps from the supervisor (pid %d): %w", state.Supervisor.PID, err)
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for !state.GitOps || !state.ready() || state.component("manager").PID == before {
		select {
		case <-ctx.Done():
			return errors.New("timed out waiting for the embedded plane to start GitOps: see `drover status`")
		case <-time.After(100 * time.Millisecond):
		}
		if state, err = ReadState(h); err != nil {
			return err
		}
	}
	return nil
}

// ready reports whether all components are ready.
func (s State) ready() bool {
	for i := range s.Components {
		if !s.Components[i].Ready() {
			return false
		}
	}
	return true
}
