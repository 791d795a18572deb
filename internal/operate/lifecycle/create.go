package lifecycle

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/model/spec"
	"github.com/drover-dev/drover/internal/operate/lifecycle/workflow"
)

// Create is the plan to make a workload cluster.
func (w *Workload) Create() (*workflow.Plan, error) {
	return w.plan(workflow.Create,
		workflow.Phase{Name: workflow.SetupAndValidate, Repeat: true, Run: w.setupCreate},
		workflow.Phase{Name: workflow.CreateWorkloadCluster, Run: w.connected(w.create), Changes: w.creates()},
		workflow.Phase{Name: workflow.InstallAddOns, Run: w.withoutGit},
	)
}

// creates are what a create makes.
func (w *Workload) creates() []string {
	var out []string
	for _, o := range w.Config.Objects() {
		line := fmt.Sprintf("creates %s %s/%s", typeName(o), o.GetNamespace(), o.GetName())
		if o == client.Object(w.Config.Cluster) {
			line += ": " + summary(w.Config.Cluster)
		}
		out = append(out, line)
	}
	return append(out, "writes "+w.files().Kubeconfig(), "writes "+w.files().Spec())
}

func (w *Workload) setupCreate(ctx context.Context, p *workflow.Progress) error {
	if err := checkSpec(w.Config, p); err != nil {
		return err
	}
	if err := w.connect(ctx); err != nil {
		return err
	}
	return preflight(ctx, p, w.checkVersions, w.checkOffered, w.checkName, w.checkFree, w.checkAdmitted, w.checkCapacity)
}

// create applies the spec and follows it until the cluster is ready.
func (w *Workload) create(ctx context.Context, p *workflow.Progress) error {
	if err := ensureNamespace(ctx, w.plane.Client, w.Config.Cluster.Namespace); err != nil {
		return err
	}
	if err := w.applyAll(ctx); err != nil {
		return err
	}
	if err := w.follow(p).untilReady(ctx, w.Limits); err != nil {
		return err
	}
	return w.writeFiles(ctx, p)
}

func (w *Workload) applyAll(ctx context.Context) error {
	for _, o := range w.Config.Objects() {
		if _, err := apply(ctx, w.plane.Client, o); err != nil {
			return err
		}
	}
	return nil
}

func (w *Workload) follow(p *workflow.Progress) *follower {
	return &follower{plane: w.plane, key: w.key(), progress: p}
}

// writeFiles writes the way into the cluster, and what it was brought to.
func (w *Workload) writeFiles(ctx context.Context, p *workflow.Progress) error {
	live := &anywherev1.Cluster{}
	if err := w.plane.Client.Get(ctx, w.key(), live); err != nil {
		return fmt.Errorf("reading cluster %q: %w", w.key().Name, err)
	}
	config, err := spec.Gather(ctx, w.plane.Client, live)
	if err != nil {
		return err
	}
	if err := w.files().writeSpec(config); err != nil {
		return err
	}
	data, err := w.plane.Kubeconfig(ctx, live)
	if apierrors.IsForbidden(err) {
		p.Note("the kubeconfig of the cluster is not yours to read: ask an administrator for one")
		return nil
	}
	if err != nil {
		return err
	}
	return w.files().write(w.files().Kubeconfig(), data)
}

// withoutGit is the phase that would write to Git.
func (w *Workload) withoutGit(context.Context, *workflow.Progress) error {
	return withoutGit(w.Config)
}

// withoutGit says why nothing is written to Git.
func withoutGit(c *spec.Config) error {
	if c.Cluster.Spec.GitOpsRef == nil {
		return workflow.Skip("no GitOps is configured")
	}
	return workflow.Skip("%s %q is kept with the cluster; this Drover does not write to Git itself", c.Cluster.Spec.GitOpsRef.Kind, c.Cluster.Spec.GitOpsRef.Name)
}
