package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/metal/access"
	"github.com/drover-dev/drover/internal/operate/bootstrap"
	"github.com/drover-dev/drover/internal/operate/lifecycle/workflow"
	"github.com/drover-dev/drover/internal/plane"
)

// Create is the plan to make a management cluster.
func (m *Management) Create() (*workflow.Plan, error) {
	m.newborn = true
	return m.plan(workflow.Create,
		workflow.Phase{Name: workflow.SetupAndValidate, Repeat: true, Run: m.setupCreate},
		workflow.Phase{Name: workflow.CreateBootstrapCluster, Run: m.startBootstrapAndDeliver, Changes: []string{"starts a management plane in " + m.Bootstrap.Dir}},
		workflow.Phase{Name: workflow.CreateWorkloadCluster, Run: m.create, Changes: m.on(nil, "").creates()},
		workflow.Phase{Name: workflow.MoveManagementCluster, Run: m.moveToItself, Fixes: true, Changes: []string{
			"installs Drover on the cluster", "moves all objects of the cluster to it",
		}},
		workflow.Phase{Name: workflow.InstallEKSAComponents, Run: m.settle, Changes: []string{"has the cluster manage itself"}},
		workflow.Phase{Name: workflow.InstallAddOns, Run: m.withoutGit},
		workflow.Phase{Name: workflow.DeleteBootstrap, Run: m.deleteBootstrap, Changes: []string{"removes " + m.Bootstrap.Dir}},
	)
}

func (m *Management) withoutGit(context.Context, *workflow.Progress) error {
	return withoutGit(m.Config)
}

func (m *Management) setupCreate(ctx context.Context, p *workflow.Progress) error {
	if err := checkSpec(m.Config, p); err != nil {
		return err
	}
	return preflight(ctx, p, m.checkFiles, m.checkMachine, m.checkRegistry, m.checkCapacity)
}

// checkFiles refuses to write over what another creation has left.
func (m *Management) checkFiles(_ context.Context, p *workflow.Progress) []error {
	if p.Resumed() {
		return nil
	}
	if file := m.files().Kubeconfig(); exists(file) {
		return []error{fmt.Errorf("there is %q already: is there a cluster %q? Delete it, choose another name, or remove the file if the cluster is gone", file, m.Config.Cluster.Name)}
	}
	if m.hasBootstrap() {
		return []error{fmt.Errorf("there is a management plane for a cluster %q in %q, left by a run from another directory: go on there, or remove it with `drover down --purge --home %s`",
			m.Config.Cluster.Name, m.Bootstrap.Dir, m.Bootstrap.Dir)}
	}
	return nil
}

// checkMachine makes sure that a management plane can be started here.
func (m *Management) checkMachine(_ context.Context, p *workflow.Progress) []error {
	if p.Resumed() {
		return nil
	}
	if _, err := plane.Preflight(m.bootstrapOptions(p)); err != nil {
		return []error{err}
	}
	return nil
}

// checkCapacity asks for machines as far as it is known now whom to ask: the metal of this host may not run yet.
func (m *Management) checkCapacity(ctx context.Context, p *workflow.Progress) []error {
	secret, err := m.credentials()
	switch {
	case errors.Is(err, errNoCredentials):
		return []error{err}
	case err != nil || p.Resumed():
		return nil
	}
	return canHave(ctx, p, access.Credentials{Token: string(secret.Data[access.TokenKey]), URL: string(secret.Data[access.URLKey])}, demand(m.Config))
}

// startBootstrapAndDeliver has the image of Drover made while the plane starts, which leaves cores idle.
func (m *Management) startBootstrapAndDeliver(ctx context.Context, p *workflow.Progress) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return m.deliver(ctx, nil) })
	group.Go(func() error { return m.startBootstrap(ctx, p) })
	return group.Wait()
}

// create makes the cluster on the plane of this machine.
func (m *Management) create(ctx context.Context, p *workflow.Progress) error {
	w, err := m.workAt(ctx, p)
	if err != nil {
		return err
	}
	defer m.installEarly(ctx, w)()
	return w.create(ctx, p)
}

// installEarly brings Drover to the cluster as soon as somebody answers there, while the rest of it becomes ready, until end is called. It is
// a head start only: the phase that installs does what is still to be done, and is the one to tell what can't be.
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

// workAt has all in place that machines of the cluster need, and is the cluster on the plane of this machine.
func (m *Management) workAt(ctx context.Context, p *workflow.Progress) (*Workload, error) {
	w, err := m.onBootstrap(ctx, p)
	if err != nil {
		return nil, err
	}
	m.mark()
	return w, m.deliver(ctx, p)
}

// mark says that a command is at work, without which a management cluster can't be made.
func (m *Management) mark() {
	c := m.Config.Cluster
	if c.Annotations == nil {
		c.Annotations = map[string]string{}
	}
	c.Annotations[anywherev1.ManagedByCLIAnnotation] = "true"
	c.Annotations[anywherev1.ManagementComponentsVersionAnnotation] = m.version()
}

// deliver has machines have Drover's image before they need it.
func (m *Management) deliver(ctx context.Context, p *workflow.Progress) error {
	if m.Image != "" {
		return nil
	}
	image, err := m.ownImage()
	if err != nil {
		return err
	}
	p.Waiting("the image of Drover for the machines")
	return management.Deliver(ctx, m.Metal, image)
}

func (m *Management) ownImage() (*management.Archive, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding the program: %w", err)
	}
	return management.Image(self)
}

// install puts Drover on the cluster and waits until it works.
func (m *Management) install(ctx context.Context, p *workflow.Progress, to *rest.Config) error {
	p.Waiting("Drover's kinds, roles and webhooks on the cluster")
	if err := m.applyComponents(ctx, to); err != nil {
		return err
	}
	return management.Ready(ctx, to, func(what string) { p.Waiting("Drover on the cluster: %s", what) })
}

// applyComponents writes to the cluster what Drover consists of, as far as it is not there.
func (m *Management) applyComponents(ctx context.Context, to *rest.Config) error {
	o := management.Options{Image: m.Image}
	if m.Image == "" {
		image, err := m.ownImage()
		if err != nil {
			return err
		}
		o.Image = image.Reference
	}
	if m.Config.Packet == nil {
		local, err := management.ReadMetal(m.Metal)
		if err != nil {
			return err
		}
		o.Metal = &local
	}
	// The key that signed the bundles that it brings along. One that has a key already keeps it.
	if m.newborn && exists(m.Bootstrap.BundleKey()) {
		o.BundleKey = m.Bootstrap.BundleKey()
	}
	return management.Install(ctx, to, o)
}

// moveToItself has the cluster have Drover, and then its own objects.
func (m *Management) moveToItself(ctx context.Context, p *workflow.Progress) error {
	own, err := m.own()
	if err != nil {
		return err
	}
	if err := m.install(ctx, p, own); err != nil {
		return err
	}
	bootstrap, err := m.onBootstrap(ctx, p)
	if err != nil {
		return err
	}
	p.Waiting("the objects of the cluster to be moved to it")
	return management.Move(ctx, bootstrap.REST, own, m.Config.Cluster.Name)
}

// settle waits until the cluster is ready by its own account, and lets go of it.
func (m *Management) settle(ctx context.Context, p *workflow.Progress) error {
	w, err := m.onItself(ctx)
	if err != nil {
		return err
	}
	if m.Config.Packet != nil {
		if err := m.writeCredentials(ctx, w.plane.Client); err != nil {
			return err
		}
	}
	if err := w.follow(p).untilReady(ctx, m.Limits); err != nil {
		return err
	}
	if err := m.unmark(ctx, w); err != nil {
		return err
	}
	return w.writeFiles(ctx, p)
}

// unmark says that no command is at work any more.
func (m *Management) unmark(ctx context.Context, w *Workload) error {
	live, err := w.plane.Find(ctx, m.Config.Cluster.Namespace, m.Config.Cluster.Name)
	if err != nil {
		return err
	}
	return annotate(ctx, w.plane.Client, live, map[string]string{anywherev1.ManagedByCLIAnnotation: "", anywherev1.ManagementComponentsVersionAnnotation: m.version()})
}
