package lifecycle

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/model/spec"
	"github.com/drover-dev/drover/internal/operate/inspect"
	"github.com/drover-dev/drover/internal/operate/lifecycle/phase"
)

// Workload plans changes of a workload cluster, whose objects are on a management plane.
type Workload struct {
	Options

	// Config is the desired cluster. To delete one, its name is enough.
	Config *spec.Config
	// REST is the connection to the management plane.
	REST *rest.Config

	plane *inspect.Plane
	// onBootstrap means that the management plane is a bootstrap plane, which has no GitOps.
	onBootstrap bool
	// differences are what an upgrade changes, once that is known.
	differences []Difference
	// connectWithin and gitGrace replace connectTimeout and failureGrace.
	connectWithin, gitGrace time.Duration
	// justConnected means that the repository is connected, even if the manager has not observed
	// that yet.
	justConnected bool
}

func (w *Workload) key() client.ObjectKey { return client.ObjectKeyFromObject(w.Config.Cluster) }

func (w *Workload) files() Files { return Files{Dir: w.Dir, Cluster: w.Config.Cluster.Name} }

// connect connects to the management plane unless an earlier phase did.
func (w *Workload) connect(ctx context.Context) error {
	if w.plane != nil {
		return nil
	}
	if err := Reach(ctx, w.REST, w.Kubeconfig); err != nil {
		return err
	}
	plane, err := inspect.Connect(w.REST)
	w.plane = plane
	return err
}

// connected returns a phase that connects before it runs.
func (w *Workload) connected(run func(context.Context, *phase.Progress) error) func(context.Context, *phase.Progress) error {
	return func(ctx context.Context, p *phase.Progress) error {
		if err := w.connect(ctx); err != nil {
			return err
		}
		return run(ctx, p)
	}
}

// live reads the cluster from the management plane.
func (w *Workload) live(ctx context.Context) (*anywherev1.Cluster, error) {
	live := &anywherev1.Cluster{}
	if err := w.plane.Client.Get(ctx, w.key(), live); err != nil {
		return nil, fmt.Errorf("reading cluster %q: %w", w.key().Name, err)
	}
	return live, nil
}

// machines returns the number of machines that a cluster asks for.
func machines(c *anywherev1.Cluster) (controlPlane, workers int) {
	for _, g := range c.Spec.WorkerNodeGroupConfigurations {
		if g.Count != nil {
			workers += *g.Count
		}
	}
	return c.Spec.ControlPlaneConfiguration.Count, workers
}

// summary describes a cluster in a line.
func summary(c *anywherev1.Cluster) string {
	controlPlane, workers := machines(c)
	out := fmt.Sprintf("Kubernetes %s, %s, %s", c.Spec.KubernetesVersion, count(controlPlane, "control plane machine"), count(workers, "worker"))
	if etcd := c.Spec.ExternalEtcdConfiguration; etcd != nil {
		out += ", " + count(etcd.Count, "etcd machine")
	}
	return out
}

// count returns a number with its noun.
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
