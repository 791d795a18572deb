package plane

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"

	"github.com/drover-dev/drover/internal/base/process"
	"github.com/drover-dev/drover/internal/base/version"
	"github.com/drover-dev/drover/internal/install"
	"github.com/drover-dev/drover/internal/kube"
	"github.com/drover-dev/drover/internal/kube/flux"
)

const (
	startTimeout  = 3 * time.Minute
	renewalPeriod = 12 * time.Hour

	// Less free space than this is reported as the likely cause of a failed start.
	fullDisk = 8 << 20
)

// Options are the user's options for a plane.
type Options struct {
	Home       Home
	APIAddress string
	APIPort    int
	SANs       []string
	KubeDir    string
	// RegistryAddress is an additional listen address of the registry.
	RegistryAddress string
	RegistryPort    int
	// BundleKey is a file with the key that signs package bundles. By default, a new home generates
	// one.
	BundleKey string
	// GitOps turns the Flux controllers on or off; nil keeps the previous choice, at first off.
	GitOps *bool
	// Backups changes the settings of scheduled backups.
	Backups BackupOptions
	// Packet, if set, finds the Packet API for clusters that name none, and may start it. It runs
	// concurrently with the start of the plane; only the manager waits for it. After a SkippedError
	// the plane runs without it.
	Packet func(context.Context) (PacketAPI, error)
	// Brief trades memory for speed, for a plane that exists only for minutes.
	Brief bool
	// Flags make a background supervisor set Packet as in this process.
	Flags    []string
	Progress Progress
	Log      *slog.Logger
}

// Plane is a running management plane. Its components start from left to right and stop from right
// to left, so that none misses its dependencies:
//
//	etcd ◀── kube-apiserver ◀── kube-controller-manager
//	                        ◀── manager ──▶ registry
//	                        ◀── source-controller ◀── kustomize-controller   (with GitOps)
type Plane struct {
	home     Home
	config   Config
	kube     kube.Binary
	flux     flux.Programs // empty without GitOps
	probes   *prober
	log      *slog.Logger
	children []*child
	claims   []net.Listener // see claimPorts
	// gitOps is set while the plane runs GitOps. It may be turned on at any time, unlike the rest of
	// config.
	gitOps atomic.Bool

	stateMu sync.Mutex
	phase   string
	// packet is the Packet API that the manager was started with.
	packet PacketAPI
}

// Run starts the plane, keeps it running until ctx ends, and stops it. If another process runs a
// plane on the same home, it returns ErrRunning.
func Run(ctx context.Context, o Options) error {
	p, unlock, err := prepare(o)
	if err != nil {
		return err
	}
	defer unlock()
	defer p.stop()
	signals := p.listen()
	if err := p.start(ctx, o); err != nil {
		return err
	}
	p.setPhase(PhaseReady)
	o.Progress.done()
	_, _ = daemon.SdNotify(false, daemon.SdNotifyReady)
	p.log.Info("Plane is ready", "api", p.config.APIURL())
	if !o.Brief {
		var backups sync.WaitGroup
		backups.Go(func() { p.keepBackedUp(ctx) })
		defer backups.Wait() // Before etcd stops.
	}
	p.maintain(ctx, signals, p.watchFluxConfigs(ctx))
	_, _ = daemon.SdNotify(false, daemon.SdNotifyStopping)
	return nil
}

// ErrRunning means that the home's plane is already running or starting.
var ErrRunning = errors.New("the embedded plane is already running")

// prepare performs all steps that need no process.
func prepare(o Options) (*Plane, func(), error) {
	stage := o.Progress.stage("checks")
	binary, err := Preflight(o)
	if err != nil {
		return nil, nil, stage.failed(err)
	}
	if err := o.Home.makeRoot(); err != nil {
		return nil, nil, stage.failed(err)
	}
	lock, err := o.Home.lock()
	if errors.Is(err, errLocked) {
		return nil, nil, stage.failed(ErrRunning)
	}
	if err != nil {
		return nil, nil, stage.failed(err)
	}
	unlock := func() { _ = lock.Close() }
	// Some writers rely on the umask for the mode of their files.
	syscall.Umask(0o077)
	p := &Plane{home: o.Home, kube: binary, probes: newProber(o.Home), log: o.Log, phase: PhaseStarting}
	if err := p.fill(o, stage); err != nil {
		unlock()
		return nil, nil, err
	}
	return p, unlock, nil
}

// fill updates the files of the home from the options, and ends processes of an earlier supervisor.
func (p *Plane) fill(o Options, stage *stage) error {
	if err := p.home.endLeftovers(); err != nil {
		return stage.failed(err)
	}
	config, err := p.home.readConfig()
	if err != nil {
		return stage.failed(err)
	}
	if p.config, err = config.complete(o); err != nil {
		return stage.failed(err)
	}
	if p.flux, err = o.findFlux(); err != nil {
		return stage.failed(err)
	}
	p.gitOps.Store(p.config.GitOps)
	// Requested ports are not claimed: the user keeps them distinct.
	if err := p.claimPorts(config.asked(o)); err != nil {
		return stage.failed(err)
	}
	stage.ok()
	stage = o.Progress.stage("certificates")
	steps := []func() error{
		func() error { return p.home.writeMeta(p.kube.Version, time.Now()) },
		p.home.makeRest,
		func() error { return writeJSON(p.home.configFile(), p.config) },
		func() error { return p.renew(p.config) },
		func() error { _, err := p.home.ensureEncryption(time.Now()); return err },
		func() error { return p.home.writeAPIServerFiles(p.config) },
		p.home.ensureRegistryPassword,
		func() error { return p.home.ensureBundleKey(o.BundleKey) },
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return stage.failed(err)
		}
	}
	stage.ok()
	return nil
}

// renew issues the certificates that are due and writes the kubeconfigs that contain them.
func (p *Plane) renew(c Config) error {
	issued, err := PKI{home: p.home, now: time.Now()}.Ensure(c)
	if err != nil {
		return err
	}
	if names := slices.Concat(issued.Authorities, issued.Leaves); len(names) > 0 {
		p.log.Info("Issued certificates", "names", names)
	}
	if err := p.home.writeKubeconfigs(c); err != nil {
		return err
	}
	if len(issued.Authorities) > 0 {
		p.restartAll()
	}
	return nil
}

// restartAll restarts the components, if they run, to make them trust a new CA.
func (p *Plane) restartAll() {
	for _, c := range p.children {
		c.restart()
	}
}

func (p *Plane) start(ctx context.Context, o Options) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	progress, packet := o.Progress, p.findPacket(ctx, o.Packet)
	// The API server needs a second before it connects, so etcd can start concurrently.
	etcd, apiserver, registry := p.launch(p.etcd()), p.launch(p.apiserver()), p.launch(p.registry())
	if err := p.await(ctx, etcd, progress.stage(etcd.Name)); err != nil {
		return err
	}
	if err := p.home.markServed(); err != nil {
		return err
	}
	if err := p.await(ctx, apiserver, progress.stage(apiserver.Name)); err != nil {
		return err
	}
	stage := progress.stage("components")
	if err := p.install(ctx); err != nil {
		return stage.failed(err)
	}
	stage.ok()
	return p.startControllers(ctx, progress, packet, registry)
}

// startControllers starts everything that works on objects. Only the manager needs the Packet API.
func (p *Plane) startControllers(ctx context.Context, progress Progress, packet func(Progress) error, registry *child) error {
	controllers := p.launch(p.controllerManager())
	if err := packet(progress); err != nil {
		return err
	}
	if err := p.shareMachines(ctx); err != nil {
		return err
	}
	gitOps, err := p.launchFluxIfOn(ctx, progress) // The manager needs the kinds of Flux.
	if err != nil {
		return err
	}
	manager := p.launch(p.manager())
	if err := p.await(ctx, registry, progress.stage(registry.Name)); err != nil {
		return err
	}
	p.offerPackages(ctx, progress)
	for _, c := range append([]*child{controllers, manager}, gitOps...) {
		if err := p.await(ctx, c, progress.stage(c.Name)); err != nil {
			return err
		}
	}
	return nil
}

func (p *Plane) launch(c Component) *child {
	if c.Version == "" && c.AskVersion == nil {
		c.Version = p.kube.Version
	}
	child := newChild(c, newLogFile(p.home.LogFile(c.Name)), p.writeState)
	p.stateMu.Lock()
	p.children = append(p.children, child)
	p.stateMu.Unlock()
	child.start()
	return child
}

func (p *Plane) await(ctx context.Context, c *child, s *stage) error {
	select {
	case <-c.served:
		s.ok()
		return nil
	case <-c.hopeless:
	case <-ctx.Done():
	}
	if cause := context.Cause(ctx); errors.Is(cause, context.Canceled) {
		return s.failed(errors.New("interrupted before the embedded plane was ready"))
	}
	failure := c.startError()
	if spaceLeft(p.home.Dir, fullDisk) != nil {
		failure.Hint = "no space left on device, free some space and run `drover up` again"
	}
	return s.failed(failure)
}

// install installs Drover's CRDs, roles and webhooks.
func (p *Plane) install(ctx context.Context) error {
	cfg := p.home.clientConfig(p.config)
	if err := bindAdmins(ctx, cfg); err != nil {
		return err
	}
	return install.Apply(ctx, cfg, install.Options{WebhookURL: "https://" + loopback(p.config.Ports.ManagerWebhook)})
}

// stop stops the components in reverse order: etcd last, because the others write to it until they
// exit.
func (p *Plane) stop() {
	p.setPhase(PhaseStopping)
	for _, c := range slices.Backward(p.children) {
		c.stop()
	}
	p.setPhase(PhaseStopped)
	p.log.Info("Plane stopped")
}

func (p *Plane) setPhase(phase string) {
	p.stateMu.Lock()
	p.phase = phase
	p.stateMu.Unlock()
	p.writeState()
}

// writeState publishes the state. A failure, such as a full disk, must not end the plane.
func (p *Plane) writeState() {
	p.stateMu.Lock()
	defer p.stateMu.Unlock()
	v, c := version.Get(), p.settings()
	s := State{
		Home: p.home.Dir, Phase: p.phase, API: p.config.APIURL(),
		Drover: v.Version, Kubernetes: p.kube.Version, ClusterAPI: v.ClusterAPI,
		PacketAPI: p.packet.URL, Registry: p.config.RegistryURL(), GitOps: c.GitOps, GitWebhook: c.GitWebhookURL(), Supervisor: process.Identify(os.Getpid()),
	}
	for _, c := range p.children {
		status := c.snapshot()
		s.Components = append(s.Components, status)
		if status.PID != 0 {
			s.Children = append(s.Children, process.Identify(status.PID))
		}
		if p.phase == PhaseReady && !status.Ready() {
			s.Phase = PhaseDegraded
		}
	}
	if err := writeJSON(p.home.stateFile(), s); err != nil {
		p.log.Error("Failed to write the state", "error", err)
	}
}
