// Package audit implements `drover audit`, which shows who created, changed and deleted clusters.
package audit

import (
	"cmp"
	"fmt"
	stdio "io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	droverv1 "github.com/drover-dev/drover/api/drover/v1alpha1"
	"github.com/drover-dev/drover/internal/base/text"
	"github.com/drover-dev/drover/internal/cli/management"
	"github.com/drover-dev/drover/internal/cli/ui"
	"github.com/drover-dev/drover/internal/operate/inspect"
)

var actions = []droverv1.AuditAction{droverv1.Created, droverv1.Upgraded, droverv1.Scaled, droverv1.Changed, droverv1.Paused, droverv1.Resumed, droverv1.Deleted, droverv1.Evicted}

// filter selects records.
type filter struct {
	cluster, namespace, user string
	actions                  []string
	since                    time.Duration
}

// NewCommand returns `drover audit`.
func NewCommand(io *ui.IO) *cobra.Command {
	var (
		plane  management.Flags
		output ui.Output
		f      filter
	)
	cmd := &cobra.Command{
		Use:   "audit [CLUSTER]",
		Short: "Show who created, changed and deleted clusters",
		Long: `Show who created, upgraded, scaled, changed and deleted clusters, and when, oldest
first. Records are immutable and outlive their cluster. They include pauses, and changes
of the configs that a cluster references. The newest 1,000 records of each cluster are
kept; an Evicted record counts those that were deleted.

Records contain the values of versions and counts. Of other fields they contain
only the path, because values may be secret.`,
		Example: `  drover audit                                  # all clusters
  drover audit billy --since 24h                # one cluster, the last day
  drover audit --action Deleted -o json
  drover audit --user administrator --kubeconfig mgmt.kubeconfig`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.check(); err != nil {
				return ui.Usage(err)
			}
			if len(args) > 0 {
				f.cluster = args[0]
			}
			c, err := connect(&plane)
			if err != nil {
				return err
			}
			all := &droverv1.AuditRecordList{}
			if err := c.List(cmd.Context(), all, f.labels()); err != nil {
				return explain(err)
			}
			all.Items = f.apply(all.Items, time.Now())
			all.TypeMeta = metav1.TypeMeta{APIVersion: droverv1.GroupVersion.String(), Kind: "AuditRecordList"}
			return output.Print(io.Out, all, func(w stdio.Writer) error { return table(w, all.Items) })
		},
	}
	plane.Add(cmd.Flags())
	cmd.Flags().StringVarP(&f.namespace, "namespace", "n", "", "only clusters in this `namespace`")
	cmd.Flags().StringVar(&f.user, "user", "", "only actions of this `user`")
	cmd.Flags().StringSliceVar(&f.actions, "action", nil, "only these `actions`: "+words())
	cmd.Flags().DurationVar(&f.since, "since", 0, "only actions within this `duration`, such as 24h")
	_ = cmd.RegisterFlagCompletionFunc("action", cobra.FixedCompletions(strings.Split(words(), ", "), cobra.ShellCompDirectiveNoFileComp))
	output.AddFlag(cmd)
	return cmd
}

func words() string {
	var out []string
	for _, a := range actions {
		out = append(out, string(a))
	}
	return strings.Join(out, ", ")
}

func connect(plane *management.Flags) (client.Client, error) {
	cfg, err := plane.Config()
	if err != nil {
		return nil, err
	}
	p, err := inspect.Connect(cfg)
	if err != nil {
		return nil, err
	}
	return p.Client, nil
}

// explain adds what the user can do about an error.
func explain(err error) error {
	switch {
	case apierrors.IsForbidden(err):
		return fmt.Errorf("listing audit records: %w; ask for the role drover-viewer or drover-cluster-admin in all namespaces", err)
	case meta.IsNoMatchError(err) || apierrors.IsNotFound(err):
		return fmt.Errorf("listing audit records: %w; check that the kubeconfig is the one of a management plane of this version of Drover or later", err)
	default:
		return fmt.Errorf("listing audit records: %w", err)
	}
}

func (f *filter) check() error {
	for i, asked := range f.actions {
		known := slices.IndexFunc(actions, func(a droverv1.AuditAction) bool { return strings.EqualFold(string(a), asked) })
		if known < 0 {
			return fmt.Errorf("unknown action %q; use %s", asked, words())
		}
		f.actions[i] = string(actions[known])
	}
	if f.since < 0 {
		return fmt.Errorf("--since must not be negative: %s", f.since)
	}
	return nil
}

// labels lets the API server skip most records.
func (f *filter) labels() client.MatchingLabels {
	out := client.MatchingLabels{}
	if f.cluster != "" {
		out[droverv1.ClusterLabel] = f.cluster
	}
	if f.namespace != "" {
		out[droverv1.NamespaceLabel] = f.namespace
	}
	return out
}

// apply returns the selected records, oldest first.
func (f *filter) apply(all []droverv1.AuditRecord, now time.Time) []droverv1.AuditRecord {
	all = slices.DeleteFunc(all, func(r droverv1.AuditRecord) bool {
		return f.user != "" && r.Spec.User != f.user ||
			len(f.actions) > 0 && !slices.Contains(f.actions, string(r.Spec.Action)) ||
			f.since > 0 && now.Sub(r.Spec.Time.Time) > f.since
	})
	slices.SortFunc(all, func(a, b droverv1.AuditRecord) int {
		return cmp.Or(a.Spec.Time.Compare(b.Spec.Time.Time), cmp.Compare(a.Spec.Generation, b.Spec.Generation), cmp.Compare(a.Name, b.Name))
	})
	return all
}

func table(w stdio.Writer, all []droverv1.AuditRecord) error {
	rows := make([][]string, 0, len(all))
	for _, r := range all {
		rows = append(rows, []string{
			r.Spec.Time.Local().Format(time.DateTime), r.Spec.Cluster.Namespace + "/" + r.Spec.Cluster.Name, string(r.Spec.Action), r.Spec.User, summary(r.Spec),
		})
	}
	return ui.Table(w, []string{"TIME", "CLUSTER", "ACTION", "USER", "CHANGES"}, rows)
}

// summary describes a record in one line.
func summary(r droverv1.AuditRecordSpec) string {
	switch {
	case r.Action == droverv1.Evicted:
		return fmt.Sprintf("%d older records", r.Evicted)
	case r.Object != nil:
		return fmt.Sprintf("%s/%s: %s", r.Object.Kind, r.Object.Name, changes(r.Changes))
	default:
		return changes(r.Changes)
	}
}

// changes summarizes changes in one line.
func changes(all []droverv1.AuditedChange) string {
	const most = 3
	var out []string
	for _, c := range all {
		line := strings.TrimPrefix(c.Path, "spec.")
		if c.From != "" || c.To != "" {
			line += fmt.Sprintf(" %s → %s", cmp.Or(c.From, "none"), cmp.Or(c.To, "none"))
		}
		out = append(out, line)
	}
	return cmp.Or(text.FirstN(out, most), "-")
}
