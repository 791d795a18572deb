package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/config"
	"github.com/drover-dev/drover/internal/base/atomicfile"
	"github.com/drover-dev/drover/internal/metal"
	"github.com/drover-dev/drover/internal/model/spec"
	"github.com/drover-dev/drover/internal/operate/bootstrap"
	"github.com/drover-dev/drover/internal/operate/inspect"
	"github.com/drover-dev/drover/internal/operate/kubeconfig"
	"github.com/drover-dev/drover/internal/operate/lifecycle/phase"
	"github.com/drover-dev/drover/internal/plane"
)

// Promotion plans how a workload cluster becomes a management cluster: Drover is installed on it,
// and its objects move there, with those of other workload clusters on request. No machine is
// replaced, and the clusters keep running.
//
//	management plane ──▶ the cluster itself
type Promotion struct {
	Options

	// Cluster is the cluster to promote. An empty namespace searches all.
	Cluster client.ObjectKey
	// With names other workload clusters that follow.
	With []string
	// REST is the connection to the management plane that the clusters leave.
	REST *rest.Config
	// Plane is the home of the embedded plane on this host, which may be the one that they leave.
	Plane plane.Home
	// Metal is the home of the machines on this host.
	Metal metal.Home
	// Image is Drover's image for machines that are not on this host; empty for those that are.
	Image string

	source *Workload
	target *Management
}

// Plan returns the plan.
func (o *Promotion) Plan() *phase.Plan {
	name := o.Cluster.Name
	return &phase.Plan{
		Command: "promote cluster", Cluster: name, Again: o.Again, Fingerprint: fmt.Sprintf("promote %s with %q", name, o.With),
		Phases: []phase.Phase{
			{Name: SetupAndValidate, Summary: "Run preflight checks", Repeat: true, Run: o.setup},
			{Name: InstallEKSAComponents, Summary: "Install Drover on the cluster", Run: o.install, Changes: []string{"installs Drover on cluster " + name}},
			{Name: MoveManagementCluster, Summary: "Move the objects of the clusters there", Run: o.move, Changes: o.moves()},
			{Name: UpdateClusterAndGitResources, Summary: "Wait until the cluster manages itself", Run: o.settle, Changes: []string{
				"writes " + o.files().Kubeconfig(), "writes " + o.files().Spec(),
			}},
		},
	}
}

func (o *Promotion) files() Files { return Files{Dir: o.Dir, Cluster: o.Cluster.Name} }

// names returns all clusters that move. The promoted one is first, because it manages the others.
func (o *Promotion) names() []string { return append([]string{o.Cluster.Name}, o.With...) }

func (o *Promotion) moves() []string {
	var lines []string
	for _, name := range o.names() {
		lines = append(lines, fmt.Sprintf("moves the objects of cluster %s to %s, which manages it from then on", name, o.Cluster.Name))
	}
	return lines
}

// setup checks all clusters before anything changes.
func (o *Promotion) setup(ctx context.Context, p *phase.Progress) error {
	if err := o.locate(ctx); err != nil {
		return err
	}
	checks := []check{o.source.checkAdministrator, o.source.checkSameVersion, o.target.checkDrover, o.source.checkMovable}
	for i, name := range o.With {
		if slices.Contains(o.names()[:i+1], name) {
			return fmt.Errorf("cluster %q is named twice", name)
		}
		other := o.planeOf(client.ObjectKey{Name: name}, o.REST, o.Kubeconfig)
		other.plane = o.source.plane
		checks = append(checks, other.checkMovable)
	}
	return preflight(ctx, p, checks...)
}

// locate connects to the management plane, and finds the cluster there or, after an interruption,
// on itself. It writes the cluster's kubeconfig, which is needed to continue.
func (o *Promotion) locate(ctx context.Context) error {
	if o.target != nil {
		return nil
	}
	o.source = o.planeOf(o.Cluster, o.REST, o.Kubeconfig)
	if err := o.source.connect(ctx); err != nil {
		return err
	}
	found, err := o.read(ctx, o.source.plane)
	var none *inspect.NotFoundError
	if errors.As(err, &none) && exists(o.files().Kubeconfig()) {
		found, err = o.readOnItself(ctx)
	}
	if err != nil {
		return err
	}
	o.target = &Management{Options: o.Options, Config: found, Metal: o.Metal, Image: o.Image, firstInstall: true}
	return nil
}

// read reads the cluster with its configs.
func (o *Promotion) read(ctx context.Context, from *inspect.Plane) (*spec.Config, error) {
	live, err := from.Find(ctx, o.Cluster.Namespace, o.Cluster.Name)
	if err != nil {
		return nil, err
	}
	return spec.Gather(ctx, from.Client, live)
}

func (o *Promotion) readOnItself(ctx context.Context) (*spec.Config, error) {
	own, err := (&Management{Options: o.Options, Config: o.source.Config}).own()
	if err != nil {
		return nil, err
	}
	itself, err := inspect.Connect(own)
	if err != nil {
		return nil, err
	}
	return o.read(ctx, itself)
}

// install installs Drover on the cluster.
func (o *Promotion) install(ctx context.Context, p *phase.Progress) error {
	if err := o.locate(ctx); err != nil {
		return err
	}
	if err := o.writeKubeconfig(ctx); err != nil {
		return err
	}
	own, err := o.target.own()
	if err != nil {
		return err
	}
	if err := o.target.deliver(ctx, p); err != nil {
		return err
	}
	remove, err := o.inherit(ctx)
	if err != nil {
		return err
	}
	defer remove()
	return o.target.install(ctx, p, own)
}

func (o *Promotion) writeKubeconfig(ctx context.Context) error {
	data, err := o.source.plane.Kubeconfig(ctx, o.target.Config.Cluster)
	if err != nil {
		return fmt.Errorf("reading the kubeconfig of cluster %q, which requires an administrator: %w", o.Cluster.Name, err)
	}
	return o.files().write(o.files().Kubeconfig(), data)
}

// inherit gives the cluster what packages and add-ons refer to: the key with which the management
// plane signs bundles, and the address of its registry. The file with the key is removed with
// remove.
func (o *Promotion) inherit(ctx context.Context) (remove func(), err error) {
	remove = func() {}
	if o.leavesEmbeddedPlane() {
		registry, err := plane.ReadRegistry(o.Plane)
		o.target.bundleKey, o.target.registry = o.Plane.BundleKey(), strings.TrimPrefix(registry.URL, "https://")
		return remove, err
	}
	if o.target.registry, err = bootstrap.ManagerRegistry(ctx, o.REST); err != nil {
		return remove, err
	}
	secret := &corev1.Secret{}
	err = o.source.plane.Client.Get(ctx, client.ObjectKey{Namespace: config.Namespace, Name: config.BundleKeySecret}, secret)
	if err != nil || len(secret.Data[config.BundleKeyFile]) == 0 {
		return remove, client.IgnoreNotFound(err)
	}
	o.target.bundleKey = o.files().path("bundle.key")
	return func() { _ = os.Remove(o.target.bundleKey) }, atomicfile.Write(o.target.bundleKey, secret.Data[config.BundleKeyFile], 0o600)
}

// leavesEmbeddedPlane reports whether the management plane is the embedded plane on this host.
func (o *Promotion) leavesEmbeddedPlane() bool {
	embedded, err := kubeconfig.Connect(o.Plane.Kubeconfig())
	return err == nil && embedded.Host == o.REST.Host
}

// move hands all clusters over, the promoted one first.
func (o *Promotion) move(ctx context.Context, p *phase.Progress) error {
	if err := o.locate(ctx); err != nil {
		return err
	}
	own, err := o.target.own()
	if err != nil {
		return err
	}
	for _, name := range o.names() {
		p.Waiting("Moving the objects of cluster %s", name)
		if err := bootstrap.HandOver(ctx, o.REST, own, name, o.Cluster.Name); err != nil {
			return err
		}
	}
	return nil
}

// settle waits until the cluster manages itself, and writes its files.
func (o *Promotion) settle(ctx context.Context, p *phase.Progress) error {
	if err := o.locate(ctx); err != nil {
		return err
	}
	w, err := o.target.onItself(ctx)
	if err != nil {
		return err
	}
	if err := w.follow(p, waitingFor).untilReady(ctx, o.Limits); err != nil {
		return err
	}
	if err := o.target.unmark(ctx, w); err != nil {
		return err
	}
	if err := w.writeFiles(ctx, p); err != nil {
		return err
	}
	return o.target.scheduleBackups(ctx, p, w.REST)
}
