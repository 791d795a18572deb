package addon

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	"github.com/drover-dev/drover/internal/cli/ui"
)

func newRollback(io *ui.IO, o *options) *cobra.Command {
	var to int
	var cluster string
	cmd := &cobra.Command{
		Use:   "rollback NAME",
		Short: "Roll an add-on back to an earlier revision",
		Long: `Restore the spec of an earlier revision of an add-on, by default of the previous one.
The change reaches clusters like any other, in waves if the add-on has a rollout. The
cluster selector and the rollout settings stay as they are.

With --cluster, roll back only the release on that cluster, to an earlier revision of
its own. The manager upgrades it again, unless the reconcile strategy is InstallOnce
or the HelmReleaseProxy has the annotation cluster.x-k8s.io/paused.`,
		Example: `  drover addon rollback cni                       # previous revision, all clusters
  drover addon history cni
  drover addon rollback cni --to 4
  drover addon rollback cni --cluster one --to 2  # one cluster only`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: o.complete,
		RunE: func(cmd *cobra.Command, args []string) error {
			if to < 0 {
				return ui.Usagef("--to %d: revisions start at 1", to)
			}
			if cluster != "" {
				return o.revert(cmd.Context(), io, args[0], target{cluster, to})
			}
			plane, hcp, err := o.find(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			number, err := plane.RestoreAddOn(cmd.Context(), hcp, int64(to))
			if err != nil {
				return err
			}
			fmt.Fprintf(io.Err, "Restored revision %d of add-on %s. Follow the rollout with:\n\n  drover addon status %s --wait 10m\n", number, hcp.Name, hcp.Name)
			return nil
		},
	}
	cmd.Flags().IntVar(&to, "to", 0, "`revision` to restore (default: the previous one)")
	o.addCluster(cmd, &cluster)
	return cmd
}

// target is the cluster and the revision to roll back to.
type target struct {
	cluster  string
	revision int
}

func (o *options) revert(ctx context.Context, io *ui.IO, name string, t target) error {
	plane, hcp, err := o.find(ctx, name)
	if err != nil {
		return err
	}
	release, err := plane.AddOnRelease(ctx, hcp, t.cluster)
	if err != nil {
		return err
	}
	clusters, err := (&packages{}).clusters(plane)
	if err != nil {
		return err
	}
	defer clusters.Close()
	_, isPaused := release.Annotations["cluster.x-k8s.io/paused"]
	if hcp.Spec.ReconcileStrategy != addonsv1.InstallOnce && !isPaused {
		fmt.Fprintf(io.Err, "The manager will upgrade release %s on cluster %s again. To prevent that, pause its HelmReleaseProxy first:\n\n"+
			"  drover kubectl -n %s annotate hrp %s cluster.x-k8s.io/paused=\n\n", release.Spec.ReleaseName, t.cluster, release.Namespace, release.Name)
	}
	state, err := clusters.Revert(ctx, release, t.revision)
	if err != nil {
		return fmt.Errorf("rolling back release %q on cluster %q: %w", release.Spec.ReleaseName, t.cluster, err)
	}
	fmt.Fprintf(io.Err, "Rolled back release %s on cluster %s: revision %d is %s.\n", release.Spec.ReleaseName, t.cluster, state.Revision, state.Status)
	return nil
}

func newResume(io *ui.IO, o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "resume NAME",
		Short: "Resume a paused rollout",
		Long: `Resume a rollout that paused because too many clusters failed. Clusters that have
already failed do not pause it again.`,
		Example: `  drover addon status cni     # see which clusters failed, and why
  drover addon resume cni`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: o.complete,
		RunE: func(cmd *cobra.Command, args []string) error {
			plane, hcp, err := o.find(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if err := plane.ResumeRollout(cmd.Context(), hcp, time.Now()); err != nil {
				return err
			}
			fmt.Fprintf(io.Err, "Resumed the rollout of add-on %s. Follow it with:\n\n  drover addon status %s --wait 10m\n", hcp.Name, hcp.Name)
			return nil
		},
	}
}
