package lifecycle

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/metal/access"
	"github.com/drover-dev/drover/internal/model/demand"
	"github.com/drover-dev/drover/internal/operate/bootstrap"
	"github.com/drover-dev/drover/internal/operate/lifecycle/phase"
	"github.com/drover-dev/drover/internal/plane"
)

// Create plans the creation of a management cluster.
func (m *Management) Create() (*phase.Plan, error) {
	m.firstInstall = true
	preferFluxConfig(m.Config)
	return m.plan(Create, m.Config, []phase.Phase{
		{Name: SetupAndValidate, Summary: summaryValidate, Repeat: true, Run: m.setupCreate},
		{Name: CreateBootstrapCluster, Summary: summaryBootstrap, Run: m.startBootstrapAndDeliver, Changes: m.startsBootstrap()},
		{Name: CreateWorkloadCluster, Summary: "Create the cluster's machines and install Kubernetes", Run: m.create, Changes: m.clusterOn(nil, "").creates()},
		{Name: MoveManagementCluster, Summary: "Install Drover on the cluster and move its objects there", Run: m.moveToItself, Fixes: true, Changes: []string{
			"installs Drover on the cluster", "moves the cluster's objects to it",
		}},
		{Name: InstallEKSAComponents, Summary: "Wait until the cluster manages itself", Run: m.settle, Changes: []string{"makes the cluster manage itself"}},
		{Name: InstallAddOns, Summary: summaryGitCommitted, Run: m.commitNew, Changes: m.commits()},
		{Name: DeleteBootstrap, Summary: summaryDeleteBootstrap, Run: m.deleteBootstrap, Changes: m.removesBootstrap()},
	})
}

func (m *Management) setupCreate(ctx context.Context, p *phase.Progress) error {
	if err := checkSpec(m.Config, p); err != nil {
		return err
	}
	if err := preflight(ctx, p, m.checkDrover, m.checkFiles, m.checkMachine, m.checkRegistry, m.checkNewRepository, m.checkCapacity); err != nil {
		return err
	}
	return identify(p, m.Config)
}

// checkFiles rejects a creation that would overwrite the files of another.
func (m *Management) checkFiles(_ context.Context, p *phase.Progress) []error {
	if p.Resumed() {
		return nil
	}
	if file := m.files().Kubeconfig(); exists(file) {
		return []error{fmt.Errorf("%q already exists: delete cluster %q, choose another name, or remove the file if the cluster is gone", file, m.Config.Cluster.Name)}
	}
	if m.hasBootstrap() {
		return []error{fmt.Errorf("a run in another directory left a bootstrap plane for cluster %q in %q: resume it there, or remove the plane with `drover down --purge --home %s`",
			m.Config.Cluster.Name, m.Bootstrap.Dir, m.Bootstrap.Dir)}
	}
	return nil
}

// checkMachine checks that a bootstrap plane can be started on this machine.
func (m *Management) checkMachine(_ context.Context, p *phase.Progress) []error {
	if p.Resumed() {
		return nil
	}
	if _, err := plane.Preflight(m.bootstrapOptions(p)); err != nil {
		return []error{err}
	}
	return nil
}

// checkCapacity asks the metal API whether there are enough machines, if it runs already: that of
// this host may not.
func (m *Management) checkCapacity(ctx context.Context, p *phase.Progress) []error {
	if m.SkipCapacity {
		p.Note("skipping the capacity check")
		return nil
	}
	secret, err := m.credentials()
	switch {
	case errors.Is(err, errNoCredentials):
		return []error{err}
	case err != nil || p.Resumed():
		return nil
	}
	return canHave(ctx, p, access.FromSecret(secret), demand.Of(m.Config))
}

// startBootstrapAndDeliver builds Drover's image while the plane starts, which leaves cores idle.
func (m *Management) startBootstrapAndDeliver(ctx context.Context, p *phase.Progress) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return m.deliver(ctx, nil) })
	group.Go(func() error { return m.startBootstrap(ctx, p) })
	return group.Wait()
}

// create creates the cluster from the bootstrap plane.
func (m *Management) create(ctx context.Context, p *phase.Progress) error {
	w, err := m.prepareBootstrap(ctx, p)
	if err != nil {
		return err
	}
	defer m.installEarly(ctx, w)()
	return w.create(ctx, p)
}

// installEarly installs Drover as soon as the cluster's API server answers, while the rest of the
// cluster becomes ready, until end is called. It is only a head start: the phase that installs
// completes the installation and reports failures.
func (m *Management) installEarly(ctx context.Context, w *Workload) (end func()) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if to, err := w.untilAnswers(ctx); err == nil {
			_ = m.applyComponents(ctx, to)
		}
	}()
	return func() { cancel(); <-ended }
}

// prepareBootstrap preloads what the machines need, and returns the cluster with its objects on the
// bootstrap plane.
func (m *Management) prepareBootstrap(ctx context.Context, p *phase.Progress) (*Workload, error) {
	w, err := m.onBootstrap(ctx, p)
	if err != nil {
		return nil, err
	}
	m.mark()
	return w, m.deliver(ctx, p)
}

// mark annotates the cluster as being changed by a command, without which the webhook rejects a
// management cluster.
func (m *Management) mark() {
	c := m.Config.Cluster
	if c.Annotations == nil {
		c.Annotations = map[string]string{}
	}
	c.Annotations[anywherev1.ManagedByCLIAnnotation] = "true"
	c.Annotations[anywherev1.ManagementComponentsVersionAnnotation] = m.version()
}

// deliver preloads Drover's image, and those of Flux, on the machines of this host.
func (m *Management) deliver(ctx context.Context, p *phase.Progress) error {
	if m.Image != "" {
		return nil
	}
	image, err := m.ownImage()
	if err != nil {
		return err
	}
	p.Waiting("Preloading Drover's image on the machines of this host")
	if err := bootstrap.Deliver(ctx, m.Metal, image); err != nil {
		return err
	}
	return m.deliverFlux(ctx, p)
}

func (m *Management) ownImage() (*bootstrap.Archive, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("locating the running program: %w", err)
	}
	return bootstrap.Image(self)
}

// install installs Drover on the cluster and waits until it is ready.
func (m *Management) install(ctx context.Context, p *phase.Progress, to *rest.Config) error {
	p.Waiting("Installing Drover's kinds, roles and webhooks on the cluster")
	if err := m.applyComponents(ctx, to); err != nil {
		return err
	}
	return bootstrap.Ready(ctx, to, func(what string) { p.Waiting("Starting Drover on the cluster: %s", what) })
}

// applyComponents applies Drover's components that are missing or outdated.
func (m *Management) applyComponents(ctx context.Context, to *rest.Config) error {
	installed, err := bootstrap.ManagerRegistry(ctx, to)
	if err != nil {
		return err
	}
	o := bootstrap.Options{Image: m.Image, Registry: cmp.Or(m.registry, installed)}
	if m.Image == "" {
		image, err := m.ownImage()
		if err != nil {
			return err
		}
		o.Image = image.Reference
	}
	images, err := m.fluxImages()
	if err != nil {
		return err
	}
	if images != nil {
		o.Flux = &images.References
	}
	if m.Config.Packet == nil {
		local, err := bootstrap.ReadMetal(m.Metal)
		if err != nil {
			return err
		}
		o.Metal = &local
	}
	// The key that signed the bundles that move there. A cluster that has a key keeps it.
	if key := cmp.Or(m.bundleKey, m.Bootstrap.BundleKey()); m.firstInstall && exists(key) {
		o.BundleKey = key
	}
	return bootstrap.Install(ctx, to, o)
}

// moveToItself installs Drover on the cluster and moves the cluster's objects there.
func (m *Management) moveToItself(ctx context.Context, p *phase.Progress) error {
	own, err := m.own()
	if err != nil {
		return err
	}
	if err := m.install(ctx, p, own); err != nil {
		return err
	}
	source, err := m.onBootstrap(ctx, p)
	if err != nil {
		return err
	}
	p.Waiting("Moving the cluster's objects to the cluster")
	return bootstrap.Move(ctx, source.REST, own, m.Config.Cluster.Name)
}

// settle is settleNew, and turns scheduled backups on.
func (m *Management) settle(ctx context.Context, p *phase.Progress) error {
	if err := m.settleNew(ctx, p); err != nil {
		return err
	}
	own, err := m.own()
	if err != nil {
		return err
	}
	return m.scheduleBackups(ctx, p, own)
}

// settleNew waits until the cluster reports itself ready, and ends the change by a command.
func (m *Management) settleNew(ctx context.Context, p *phase.Progress) error {
	w, err := m.onItself(ctx)
	if err != nil {
		return err
	}
	if m.Config.Packet != nil {
		if err := m.writeCredentials(ctx, w.plane.Client); err != nil {
			return err
		}
	}
	if err := w.follow(p, waitingFor).untilReady(ctx, m.Limits); err != nil {
		return err
	}
	if err := m.unmark(ctx, w); err != nil {
		return err
	}
	return w.writeFiles(ctx, p)
}

// unmark removes the mark.
func (m *Management) unmark(ctx context.Context, w *Workload) error {
	live, err := w.plane.Find(ctx, m.Config.Cluster.Namespace, m.Config.Cluster.Name)
	if err != nil {
		return err
	}
	return annotate(ctx, w.plane.Client, live, map[string]string{anywherev1.ManagedByCLIAnnotation: "", anywherev1.ManagementComponentsVersionAnnotation: m.version()})
}
