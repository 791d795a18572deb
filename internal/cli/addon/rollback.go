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
		Short: "Go back to what an add-on was before",
		Long: `Give an add-on the spec of an earlier revision, of the one before the current
unless --to says otherwise. The clusters follow as after any other change, in waves if
the add-on has a rollout. Which clusters are chosen, and how changes are rolled out,
stays as it is.

With --cluster, only the release on that cluster goes back, to an earlier revision of
its own. The manager brings it forward again, unless the add-on is installed once only
or has the annotation cluster.x-k8s.io/paused.`,
		Example: `  drover addon rollback cni                       # to the revision before, on all clusters
  drover addon history cni
  drover addon rollback cni --to 4
  drover addon rollback cni --cluster one --to 2  # only there`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: o.complete,
		RunE: func(cmd *cobra.Command, args []string) error {
			if to < 0 {
				return ui.Usagef("--to %d: revisions count from 1", to)
			}
			if cluster != "" {
				return o.revert(cmd.Context(), io, args[0], target{cluster, to})
			}
			plane, hcp, err := o.find(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			number, err := plane.Restore(cmd.Context(), hcp, int64(to))
			if err != nil {
				return err
			}
			fmt.Fprintf(io.Err, "%s is as it was at revision %d. See how the clusters follow:\n\n  drover addon status %s --wait 10m\n", hcp.Name, number, hcp.Name)
			return nil
		},
	}
	cmd.Flags().IntVar(&to, "to", 0, "`revision` to go back to (default: the one before the current)")
	o.addCluster(cmd, &cluster)
	return cmd
}

// target is where to go back to.
type target struct {
	cluster  string
	revision int
}

func (o *options) revert(ctx context.Context, io *ui.IO, name string, t target) error {
	plane, hcp, err := o.find(ctx, name)
	if err != nil {
		return err
	}
	release, err := plane.Release(ctx, hcp, t.cluster)
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
		fmt.Fprintf(io.Err, "The manager will bring release %s on cluster %s forward again. To keep it back, annotate its HelmReleaseProxy first:\n\n"+
			"  drover kubectl -n %s annotate hrp %s cluster.x-k8s.io/paused=\n\n", release.Spec.ReleaseName, t.cluster, release.Namespace, release.Name)
	}
	state, err := clusters.Revert(ctx, release, t.revision)
	if err != nil {
		return fmt.Errorf("taking release %q on cluster %q back: %w", release.Spec.ReleaseName, t.cluster, err)
	}
	fmt.Fprintf(io.Err, "Release %s on cluster %s is at revision %d, %s.\n", release.Spec.ReleaseName, t.cluster, state.Revision, state.Status)
	return nil
}

func newResume(io *ui.IO, o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "resume NAME",
		Short: "Let a paused rollout go on",
		Long: `Let a rollout go on that was paused because too many clusters failed. Those that
have failed until now do not pause it again.`,
		Example: `  drover addon status cni     # which clusters failed, and why?
  drover addon resume cni`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: o.complete,
		RunE: func(cmd *cobra.Command, args []string) error {
			plane, hcp, err := o.find(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if err := plane.Resume(cmd.Context(), hcp, time.Now()); err != nil {
				return err
			}
			fmt.Fprintf(io.Err, "The rollout of %s goes on. See how:\n\n  drover addon status %s --wait 10m\n", hcp.Name, hcp.Name)
			return nil
		},
	}
}
