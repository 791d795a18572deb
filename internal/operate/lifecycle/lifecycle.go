// Package lifecycle is what each phase of create, upgrade and delete does with a cluster: it looks before anything is changed, applies the
// objects of a spec to a management plane, follows what the controllers there make of them, and writes files about it.
//
// It works with the rights of the person who runs it, and never reconciles: the one lifecycle is that of the controllers. In which order
// phases come, what is recorded of them and how they are resumed, is package workflow's. Start with Workload.
package lifecycle

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/base/version"
	"github.com/drover-dev/drover/internal/model/spec"
	"github.com/drover-dev/drover/internal/operate/inspect"
	"github.com/drover-dev/drover/internal/operate/lifecycle/workflow"
)

// Limits are how long things may take; 0 is as long as it takes.
type Limits struct {
	// ControlPlane is for the whole control plane.
	ControlPlane time.Duration
	// Machine is for each worker.
	Machine time.Duration
	// Delete is for a cluster to go.
	Delete time.Duration
}

// Options are what a user decides.
type Options struct {
	Limits

	// Dir is where the cluster's files go, in a directory of its name.
	Dir string
	// Again is what to type to go on after an interruption.
	Again string
	// Version is that of this Drover; the running build's if empty.
	Version string
	// SkipSkew leaves versions unchecked.
	SkipSkew bool
	// Kubeconfig is where the way to the management plane was found, for messages.
	Kubeconfig string
}

func (o Options) version() string {
	if o.Version != "" {
		return o.Version
	}
	return version.Get().Version
}

// Workload is a workload cluster and the management plane that has it, or is to have it.
type Workload struct {
	Options

	// Config is the cluster that is wanted. To delete one, it needs no more than a name.
	Config *spec.Config
	// REST is how to reach the management plane.
	REST *rest.Config

	plane *inspect.Plane
	// differences are what an upgrade changes, once that is known.
	differences []Difference
}

func (w *Workload) key() client.ObjectKey { return client.ObjectKeyFromObject(w.Config.Cluster) }

func (w *Workload) files() Files { return Files{Dir: w.Dir, Cluster: w.Config.Cluster.Name} }

// plan completes the plan of a command.
func (w *Workload) plan(verb workflow.Verb, phases ...workflow.Phase) (*workflow.Plan, error) {
	plan, err := workflow.New(workflow.Command{Verb: verb, Workload: true}, w.Config.Cluster.Name, phases...)
	if err != nil {
		return nil, err
	}
	plan.Again = w.Again
	if verb != workflow.Delete { // Whatever the spec is by now, the cluster goes.
		plan.Fingerprint, err = fingerprint(w.Config)
	}
	return plan, err
}

// connect makes sure that the plane can be reached. It may be called by each phase.
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

// connected has a phase run with a connection.
func (w *Workload) connected(run func(context.Context, *workflow.Progress) error) func(context.Context, *workflow.Progress) error {
	return func(ctx context.Context, p *workflow.Progress) error {
		if err := w.connect(ctx); err != nil {
			return err
		}
		return run(ctx, p)
	}
}

// machines is how many machines a cluster has.
func machines(c *anywherev1.Cluster) (controlPlanes, workers int) {
	for _, g := range c.Spec.WorkerNodeGroupConfigurations {
		if g.Count != nil {
			workers += *g.Count
		}
	}
	return c.Spec.ControlPlaneConfiguration.Count, workers
}

// summary says in a line what a cluster is.
func summary(c *anywherev1.Cluster) string {
	controlPlanes, workers := machines(c)
	return fmt.Sprintf("Kubernetes %s, %s, %s", c.Spec.KubernetesVersion, count(controlPlanes, "control plane"), count(workers, "worker"))
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
