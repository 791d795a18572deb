package lifecycle

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/internal/model/spec"
	"github.com/drover-dev/drover/internal/operate/lifecycle/phase"
)

// Create plans the creation of a workload cluster.
func (w *Workload) Create() (*phase.Plan, error) {
	preferFluxConfig(w.Config)
	return w.plan(Create, w.Config, []phase.Phase{
		{Name: SetupAndValidate, Summary: summaryValidate, Repeat: true, Run: w.setupCreate},
		{Name: CreateWorkloadCluster, Summary: "Create the cluster's machines and install Kubernetes", Run: w.connected(w.create), Changes: w.creates()},
		{Name: InstallAddOns, Summary: summaryGitApplied, Run: w.connected(w.verifyApplied)},
	})
}

// creates lists what a creation creates.
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

func (w *Workload) setupCreate(ctx context.Context, p *phase.Progress) error {
	if err := checkSpec(w.Config, p); err != nil {
		return err
	}
	if err := w.connect(ctx); err != nil {
		return err
	}
	if err := preflight(ctx, p, w.checkVersions, w.checkOffered, w.checkName, w.checkFree, w.checkAdmitted, w.checkCredentials, w.checkCapacity); err != nil {
		return err
	}
	return identify(p, w.Config)
}

// create submits the spec and waits until the cluster is ready.
func (w *Workload) create(ctx context.Context, p *phase.Progress) error {
	if err := ensureNamespace(ctx, w.plane.Client, w.Config.Cluster.Namespace); err != nil {
		return err
	}
	r, err := w.connectGit(ctx, p)
	if err != nil {
		return err
	}
	if err := w.submit(ctx, p, Create, r); err != nil {
		return err
	}
	if err := w.follow(p, creating).untilReady(ctx, w.Limits); err != nil {
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

func (w *Workload) follow(p *phase.Progress, doing string) *follower {
	return &follower{plane: w.plane, key: w.key(), progress: p, doing: doing}
}

// writeFiles writes the cluster's kubeconfig and its spec with all defaults.
func (w *Workload) writeFiles(ctx context.Context, p *phase.Progress) error {
	live, err := w.live(ctx)
	if err != nil {
		return err
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
		p.Note("you may not read the cluster's kubeconfig: ask an administrator for one")
		return nil
	}
	if err != nil {
		return err
	}
	return w.files().write(w.files().Kubeconfig(), data)
}
