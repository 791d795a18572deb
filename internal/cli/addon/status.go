package addon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	stdio "io"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	"github.com/drover-dev/drover/internal/cli/ui"
	"github.com/drover-dev/drover/internal/operate/inspect"
)

func newList(io *ui.IO, o *options) *cobra.Command {
	var output ui.Output
	cmd := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List add-ons",
		Long: `List add-ons with the number of clusters that each selects, on how many of them it is
ready, on how many it has failed, and the progress of its rollout.`,
		Example: `  drover addon list
  drover addon list -n team-a -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			plane, err := o.connect()
			if err != nil {
				return err
			}
			all, err := statuses(cmd.Context(), plane, o.namespace)
			if err != nil {
				return err
			}
			return output.Print(io.Out, all, func(w stdio.Writer) error { return printList(w, all) })
		},
	}
	output.AddFlag(cmd)
	return cmd
}

func statuses(ctx context.Context, plane *inspect.Plane, namespace string) ([]inspect.AddOn, error) {
	charts, err := plane.AddOns(ctx, namespace)
	if err != nil {
		return nil, err
	}
	out := []inspect.AddOn{}
	for i := range charts {
		status, err := plane.AddOnStatus(ctx, &charts[i])
		if err != nil {
			return nil, err
		}
		out = append(out, status)
	}
	return out, nil
}

func printList(w stdio.Writer, all []inspect.AddOn) error {
	rows := make([][]string, 0, len(all))
	for _, a := range all {
		rows = append(rows, []string{
			a.Namespace, a.Name, a.Chart, a.Ready, strconv.Itoa(a.Matched), strconv.Itoa(a.ReadyOn), strconv.Itoa(a.FailedOn), rollout(a),
		})
	}
	return ui.Table(w, []string{"NAMESPACE", "NAME", "CHART", "READY", "CLUSTERS", "READY ON", "FAILED ON", "ROLLOUT"}, rows)
}

func rollout(a inspect.AddOn) string {
	if a.Paused {
		return "Paused by annotation"
	}
	return cmp.Or(a.Progress(), "-")
}

func newStatus(io *ui.IO, o *options) *cobra.Command {
	var output ui.Output
	var wait time.Duration
	cmd := &cobra.Command{
		Use:   "status [NAME]",
		Short: "Show the status of an add-on on each cluster",
		Long: `Show the version, revision and status of an add-on, or of all add-ons, on each
cluster, and why an add-on isn't ready.

With --wait, the command waits until the add-on is ready on all clusters. It fails
if that takes longer, or if the rollout pauses.`,
		Example: `  drover addon status
  drover addon status cni
  drover addon status cni --wait 10m
  drover addon status cni -o json | jq '.[0].clusters[] | select(.ready != "True")'`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: o.complete,
		RunE: func(cmd *cobra.Command, args []string) error {
			if wait > 0 && len(args) == 0 {
				return ui.Usagef("--wait requires the name of an add-on")
			}
			all, err := o.status(cmd.Context(), io, args, wait)
			if all != nil {
				err = errors.Join(output.Print(io.Out, all, func(w stdio.Writer) error { return printStatus(w, all) }), err)
			}
			return err
		},
	}
	cmd.Flags().DurationVar(&wait, "wait", 0, "how long to wait for the add-on to become ready on all clusters")
	output.AddFlag(cmd)
	return cmd
}

func (o *options) status(ctx context.Context, io *ui.IO, args []string, wait time.Duration) ([]inspect.AddOn, error) {
	if len(args) == 0 {
		plane, err := o.connect()
		if err != nil {
			return nil, err
		}
		return statuses(ctx, plane, o.namespace)
	}
	plane, hcp, err := o.find(ctx, args[0])
	if err != nil {
		return nil, err
	}
	if wait > 0 {
		status, err := waitReady(ctx, io, plane, readinessGoal{hcp, wait})
		return []inspect.AddOn{status}, err
	}
	status, err := plane.AddOnStatus(ctx, hcp)
	if err != nil {
		return nil, err
	}
	return []inspect.AddOn{status}, nil
}

// readinessGoal is the add-on to wait for, and how long.
type readinessGoal struct {
	hcp   *addonsv1.HelmChartProxy
	limit time.Duration
}

// waitReady waits until an add-on is ready or its rollout pauses. It prints a line for each change.
func waitReady(ctx context.Context, io *ui.IO, plane *inspect.Plane, w readinessGoal) (inspect.AddOn, error) {
	last, err := plane.AddOnStatus(ctx, w.hcp)
	if err != nil {
		return last, err
	}
	limited, cancel := context.WithTimeout(ctx, w.limit)
	defer cancel()
	printed := ""
	err = plane.AwaitAddOn(limited, w.hcp, func(now inspect.AddOn) bool {
		last = now
		line := fmt.Sprintf("%s: ready on %d of %d clusters, failed on %d", now.Name, now.ReadyOn, now.Matched, now.FailedOn)
		if progress := now.Progress(); progress != "" {
			line += " (" + progress + ")"
		}
		if line != printed {
			fmt.Fprintln(io.Err, line)
			printed = line
		}
		return now.Ready == string(metav1.ConditionTrue) || paused(now)
	})
	switch {
	case paused(last):
		return last, fmt.Errorf("rollout of add-on %q is paused\nTry: drover addon status %s, then drover addon resume %s or drover addon rollback %s",
			last.Name, last.Name, last.Name, last.Name)
	case errors.Is(err, context.DeadlineExceeded) || limited.Err() != nil && last.Ready != string(metav1.ConditionTrue):
		return last, fmt.Errorf("timed out after %s waiting for add-on %q: %s", w.limit, last.Name, cmp.Or(last.Message, "no status reported"))
	default:
		return last, err
	}
}

func paused(a inspect.AddOn) bool {
	return a.Rollout != nil && a.Rollout.Phase == addonsv1.RolloutPaused
}

func printStatus(w stdio.Writer, all []inspect.AddOn) error {
	for i, a := range all {
		if i > 0 {
			fmt.Fprintln(w)
		}
		fmt.Fprintf(w, "%s/%s: %s with %s, ready on %d of %d clusters\n", a.Namespace, a.Name, a.Chart, a.Tool, a.ReadyOn, a.Matched)
		if text := rollout(a); text != "-" {
			fmt.Fprintf(w, "Rollout: %s\n", text)
		}
		if a.Ready != string(metav1.ConditionTrue) && a.Message != "" {
			fmt.Fprintf(w, "Not ready: %s\n", a.Message)
		}
		rows := make([][]string, 0, len(a.Clusters))
		for _, c := range a.Clusters {
			rows = append(rows, []string{
				c.Cluster, cmp.Or(c.Version, "-"), strconv.Itoa(c.Revision), cmp.Or(c.Status, "-"), c.Ready, reason(c),
			})
		}
		if err := ui.Table(w, []string{"CLUSTER", "VERSION", "REVISION", "STATUS", "READY", "MESSAGE"}, rows); err != nil {
			return err
		}
	}
	return nil
}

func reason(c inspect.OnCluster) string {
	if c.Ready == string(metav1.ConditionTrue) {
		return ""
	}
	return cmp.Or(c.Message, c.Reason)
}
