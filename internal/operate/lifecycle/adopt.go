package lifecycle

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/model/demand"
	"github.com/drover-dev/drover/internal/model/spec"
	"github.com/drover-dev/drover/internal/operate/bootstrap"
	"github.com/drover-dev/drover/internal/operate/inspect"
	"github.com/drover-dev/drover/internal/operate/lifecycle/phase"
)

// Adoption plans how a management plane takes a workload cluster over from another one. No machine
// is replaced, and the cluster keeps running.
type Adoption struct {
	Options

	// Cluster is the cluster to take over. An empty namespace searches all.
	Cluster client.ObjectKey
	// From is the connection to the management plane that the cluster leaves, and FromFile its
	// kubeconfig.
	From     *rest.Config
	FromFile string
	// REST is the connection to the management plane that takes the cluster over.
	REST *rest.Config

	source, target *Workload
}

// Plan returns the plan.
func (a *Adoption) Plan() *phase.Plan {
	return &phase.Plan{
		Command: "adopt cluster", Cluster: a.Cluster.Name, Again: a.Again, Fingerprint: "adopt " + a.Cluster.Name,
		Phases: []phase.Phase{
			{Name: SetupAndValidate, Summary: "Run preflight checks", Repeat: true, Run: a.setup},
			{Name: MoveManagementCluster, Summary: "Move the objects of the cluster", Run: a.move, Changes: []string{
				fmt.Sprintf("moves the objects of cluster %s", a.Cluster.Name),
			}},
			{Name: UpdateClusterAndGitResources, Summary: "Wait until the cluster is ready", Run: a.settle},
		},
	}
}

func (a *Adoption) connect(ctx context.Context) error {
	if a.target != nil {
		return nil
	}
	source := a.planeOf(a.Cluster, a.From, a.FromFile)
	if err := source.connect(ctx); err != nil {
		return err
	}
	target := a.planeOf(a.Cluster, a.REST, a.Kubeconfig)
	if err := target.connect(ctx); err != nil {
		return err
	}
	a.source, a.target = source, target
	return nil
}

func (a *Adoption) setup(ctx context.Context, p *phase.Progress) error {
	if err := a.connect(ctx); err != nil {
		return err
	}
	if a.From.Host == a.REST.Host {
		return errors.New("--from and --kubeconfig name the same management plane")
	}
	return preflight(ctx, p, a.source.checkAdministrator, a.target.checkAdministrator, a.source.checkSameVersion, a.target.checkSameVersion,
		a.source.checkMovable, a.checkNameIsFree, a.checkMachines)
}

// checkNameIsFree rejects a name that another cluster of the destination has.
func (a *Adoption) checkNameIsFree(ctx context.Context, p *phase.Progress) []error {
	if p.Resumed() {
		return nil
	}
	found, err := a.target.plane.Find(ctx, "", a.Cluster.Name)
	var none *inspect.NotFoundError
	switch {
	case errors.As(err, &none):
		return nil
	case err != nil:
		return []error{err}
	}
	return []error{fmt.Errorf("cluster name %q already exists in namespace %q of the management plane that takes the cluster over", found.Name, found.Namespace)}
}

// checkMachines rejects a cluster on machines of a host if the destination has those of another, or
// none.
func (a *Adoption) checkMachines(ctx context.Context, _ *phase.Progress) []error {
	live, err := a.source.plane.Find(ctx, a.Cluster.Namespace, a.Cluster.Name)
	if err != nil || live.Spec.DatacenterRef.Kind != anywherev1.DockerDatacenterConfigKind {
		return nil // Other checks report the error, and other credentials move along.
	}
	key := client.ObjectKey{Namespace: anywherev1.SystemNamespace, Name: demand.Credentials(&spec.Config{Cluster: live})}
	var projects []string
	for _, w := range []*Workload{a.source, a.target} {
		secret := &corev1.Secret{}
		err := client.IgnoreNotFound(w.plane.Client.Get(ctx, key, secret))
		if err != nil {
			return []error{fmt.Errorf("reading the credentials for machines on the management plane of %s: %w", w.Kubeconfig, err)}
		}
		projects = append(projects, string(secret.Data[bootstrap.ProjectKey]))
	}
	if projects[0] == projects[1] {
		return nil
	}
	return []error{fmt.Errorf("the machines of cluster %q belong to another metal service than those of the management plane that takes the cluster over", a.Cluster.Name)}
}

func (a *Adoption) move(ctx context.Context, p *phase.Progress) error {
	if err := a.connect(ctx); err != nil {
		return err
	}
	manager, err := managerName(ctx, a.target.plane)
	if err != nil {
		return err
	}
	p.Waiting("Moving the objects of cluster %s", a.Cluster.Name)
	return bootstrap.HandOver(ctx, a.From, a.REST, a.Cluster.Name, manager)
}

// settle waits until the cluster is ready on the new management plane.
func (a *Adoption) settle(ctx context.Context, p *phase.Progress) error {
	if err := a.connect(ctx); err != nil {
		return err
	}
	live, err := a.target.plane.Find(ctx, a.Cluster.Namespace, a.Cluster.Name)
	if err != nil {
		return err
	}
	a.target.Config.Cluster.Namespace = live.Namespace
	return a.target.follow(p, waitingFor).untilReady(ctx, a.Limits)
}
