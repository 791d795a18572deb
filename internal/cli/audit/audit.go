// Package audit is the command that tells who did what to which cluster.
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
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	droverv1 "github.com/drover-dev/drover/api/drover/v1alpha1"
	"github.com/drover-dev/drover/internal/cli/management"
	"github.com/drover-dev/drover/internal/cli/ui"
)

var actions = []droverv1.AuditAction{droverv1.Created, droverv1.Upgraded, droverv1.Scaled, droverv1.Changed, droverv1.Deleted}

// question says which records are wanted.
type question struct {
	cluster, namespace, user string
	actions                  []string
	since                    time.Duration
}

// NewCommand builds the command.
func NewCommand(io *ui.IO) *cobra.Command {
	var (
		plane  management.Flags
		output ui.Output
		q      question
	)
	cmd := &cobra.Command{
		Use:   "audit [CLUSTER]",
		Short: "Show who created, changed and deleted clusters",
		Long: `Show who created, upgraded, scaled, changed and deleted clusters, and when, the
oldest first. It is kept when a cluster is gone, and nobody can change it.

Versions and numbers are told with their values. Of other fields only the names
are, as their values may be secret.`,
		Example: `  drover audit                                  # all clusters
  drover audit billy --since 24h                # one of them, since yesterday
  drover audit --action Deleted -o json
  drover audit --user ann --kubeconfig mgmt.kubeconfig`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := q.check(); err != nil {
				return ui.Usage(err)
			}
			if len(args) > 0 {
				q.cluster = args[0]
			}
			c, err := connect(&plane)
			if err != nil {
				return err
			}
			all := &droverv1.AuditRecordList{}
			if err := c.List(cmd.Context(), all, q.labels()); err != nil {
				return explain(err)
			}
			all.Items = q.answer(all.Items, time.Now())
			all.TypeMeta = metav1.TypeMeta{APIVersion: droverv1.GroupVersion.String(), Kind: "AuditRecordList"}
			return output.Print(io.Out, all, func(w stdio.Writer) error { return table(w, all.Items) })
		},
	}
	plane.Add(cmd.Flags())
	cmd.Flags().StringVarP(&q.namespace, "namespace", "n", "", "only clusters in this `namespace`")
	cmd.Flags().StringVar(&q.user, "user", "", "only what this `user` did")
	cmd.Flags().StringSliceVar(&q.actions, "action", nil, "only these `actions`: "+words())
	cmd.Flags().DurationVar(&q.since, "since", 0, "only what was done in this `time`, such as 24h")
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
	scheme := runtime.NewScheme()
	if err := droverv1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	return client.New(cfg, client.Options{Scheme: scheme})
}

// explain says what to do about records that can't be read.
func explain(err error) error {
	switch {
	case apierrors.IsForbidden(err):
		return fmt.Errorf("reading who did what: %w: ask for role drover-viewer or drover-cluster-admin in all namespaces", err)
	case meta.IsNoMatchError(err) || apierrors.IsNotFound(err):
		return fmt.Errorf("no records are kept there: %w: is it the kubeconfig of a management plane, of this version of Drover or a later one?", err)
	default:
		return fmt.Errorf("reading who did what: %w", err)
	}
}

func (q *question) check() error {
	for i, asked := range q.actions {
		known := slices.IndexFunc(actions, func(a droverv1.AuditAction) bool { return strings.EqualFold(string(a), asked) })
		if known < 0 {
			return fmt.Errorf("%q is no action: use %s", asked, words())
		}
		q.actions[i] = string(actions[known])
	}
	if q.since < 0 {
		return fmt.Errorf("--since %s lies in the future", q.since)
	}
	return nil
}

// labels let the server leave out most.
func (q *question) labels() client.MatchingLabels {
	out := client.MatchingLabels{}
	if q.cluster != "" {
		out[droverv1.ClusterLabel] = q.cluster
	}
	if q.namespace != "" {
		out[droverv1.NamespaceLabel] = q.namespace
	}
	return out
}

// answer leaves out what was not asked for, and puts the rest in order.
func (q *question) answer(all []droverv1.AuditRecord, now time.Time) []droverv1.AuditRecord {
	all = slices.DeleteFunc(all, func(r droverv1.AuditRecord) bool {
		return q.user != "" && r.Spec.User != q.user ||
			len(q.actions) > 0 && !slices.Contains(q.actions, string(r.Spec.Action)) ||
			q.since > 0 && now.Sub(r.Spec.Time.Time) > q.since
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
			r.Spec.Time.Local().Format(time.DateTime), r.Spec.Cluster.Namespace + "/" + r.Spec.Cluster.Name, string(r.Spec.Action), r.Spec.User, changes(r.Spec.Changes),
		})
	}
	return ui.Table(w, []string{"TIME", "CLUSTER", "ACTION", "USER", "CHANGES"}, rows)
}

// changes is a line about changes, the first few of them.
func changes(all []droverv1.AuditedChange) string {
	const most = 3
	var out []string
	for _, c := range all[:min(len(all), most)] {
		text := strings.TrimPrefix(c.Path, "spec.")
		if c.From != "" || c.To != "" {
			text += fmt.Sprintf(" %s → %s", cmp.Or(c.From, "none"), cmp.Or(c.To, "none"))
		}
		out = append(out, text)
	}
	if more := len(all) - most; more > 0 {
		out = append(out, fmt.Sprintf("and %d more", more))
	}
	return cmp.Or(strings.Join(out, ", "), "-")
}
