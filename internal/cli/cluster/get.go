package cluster

import (
	"cmp"
	"errors"
	"fmt"
	stdio "io"
	"slices"
	"time"

	"github.com/spf13/cobra"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/cli/ui"
)

func newGetClusters(io *ui.IO) *cobra.Command {
	var l view
	cmd := &cobra.Command{
		Use:     "clusters [NAME...]",
		Aliases: []string{"cluster"},
		Short:   "List clusters and whether they are ready",
		Long:    `List the clusters of a management plane, all or those named, and whether they are ready.`,
		Example: `  drover get clusters
  drover get clusters -n team-a --kubeconfig mgmt/mgmt-eks-a-cluster.kubeconfig
  drover get cluster one -o yaml`,
		ValidArgsFunction: l.complete,
		RunE: func(cmd *cobra.Command, args []string) error {
			plane, err := l.connect()
			if err != nil {
				return err
			}
			list := &anywherev1.ClusterList{TypeMeta: metav1.TypeMeta{APIVersion: anywherev1.GroupVersion.String(), Kind: "ClusterList"}}
			if list.Items, err = plane.Clusters(cmd.Context(), l.namespace); err != nil {
				return err
			}
			for _, name := range args {
				if !slices.ContainsFunc(list.Items, func(c anywherev1.Cluster) bool { return c.Name == name }) {
					_, err := plane.Find(cmd.Context(), l.namespace, name)
					return err
				}
			}
			list.Items = slices.DeleteFunc(list.Items, func(c anywherev1.Cluster) bool { return len(args) > 0 && !slices.Contains(args, c.Name) })
			if len(list.Items) == 0 && l.output == "" {
				fmt.Fprintf(io.Err, "No clusters found. Try:\n\n  drover generate clusterconfig NAME -p docker --workload > NAME.yaml\n  drover create cluster -f NAME.yaml%s\n", l.plane.Flag())
				return nil
			}
			return l.output.Print(io.Out, list, func(w stdio.Writer) error { return clusterTable(w, list.Items, time.Now()) })
		},
	}
	l.add(cmd)
	return cmd
}

func clusterTable(w stdio.Writer, all []anywherev1.Cluster, now time.Time) error {
	rows := make([][]string, 0, len(all))
	for i := range all {
		c := &all[i]
		rows = append(rows, []string{
			c.Namespace, c.Name, cmp.Or(c.Status.Version, c.Spec.KubernetesVersion), cmp.Or(c.Status.ControlPlane, "-"), cmp.Or(c.Status.Workers, "-"),
			readiness(c), cmp.Or(c.ManagedBy(), "-"), age(c.CreationTimestamp, now),
		})
	}
	return ui.Table(w, []string{"NAMESPACE", "NAME", "KUBERNETES", "CONTROL PLANE", "WORKERS", "READY", "MANAGED BY", "AGE"}, rows)
}

// readiness returns whether a cluster is ready, with the reason if it is not.
func readiness(c *anywherev1.Cluster) string {
	ready := apimeta.FindStatusCondition(c.Status.Conditions, anywherev1.Ready)
	switch {
	case !c.DeletionTimestamp.IsZero():
		return "Deleting"
	case c.IsPaused():
		return "Paused"
	case ready == nil || c.Status.ObservedGeneration < c.Generation:
		return "Unknown"
	case ready.Status == metav1.ConditionTrue:
		return "True"
	}
	return fmt.Sprintf("%s (%s)", ready.Status, ready.Reason)
}

func age(t metav1.Time, now time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return duration.HumanDuration(now.Sub(t.Time))
}

func newGetMachines(io *ui.IO) *cobra.Command {
	var l view
	var cluster string
	cmd := &cobra.Command{
		Use:     "machines",
		Aliases: []string{"machine"},
		Short:   "List the machines of clusters",
		Long: `List the machines of clusters with their nodes. "drover machine list" lists all
machines, including those of no cluster.`,
		Example: `  drover get machines
  drover get machines --cluster one -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			plane, err := l.connect()
			if err != nil {
				return err
			}
			objects, err := plane.Objects(cmd.Context(), cluster)
			if err != nil {
				return err
			}
			if objects.Hidden && len(objects.Machines.Items) == 0 {
				return errors.New("you may not list machines; `drover get clusters` shows how many each cluster has")
			}
			objects.Machines.TypeMeta = metav1.TypeMeta{APIVersion: clusterv1.GroupVersion.String(), Kind: "MachineList"}
			return l.output.Print(io.Out, objects.Machines, func(w stdio.Writer) error { return machineTable(w, objects.Machines.Items, time.Now()) })
		},
	}
	l.add(cmd)
	cmd.Flags().StringVar(&cluster, "cluster", "", "`name` of the cluster (default: all)")
	_ = cmd.RegisterFlagCompletionFunc("cluster", func(cmd *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return l.complete(cmd, nil, "")
	})
	return cmd
}

func machineTable(w stdio.Writer, all []clusterv1.Machine, now time.Time) error {
	slices.SortFunc(all, func(a, b clusterv1.Machine) int {
		return cmp.Or(cmp.Compare(a.Spec.ClusterName, b.Spec.ClusterName), cmp.Compare(a.Name, b.Name))
	})
	rows := make([][]string, 0, len(all))
	for i := range all {
		m := &all[i]
		role := "worker"
		if _, is := m.Labels[clusterv1.MachineControlPlaneLabel]; is {
			role = "control plane"
		}
		ready := "Unknown"
		if c := apimeta.FindStatusCondition(m.Status.Conditions, clusterv1.ReadyCondition); c != nil {
			ready = string(c.Status)
		}
		address := "-"
		if len(m.Status.Addresses) > 0 {
			address = m.Status.Addresses[0].Address
		}
		rows = append(rows, []string{
			m.Spec.ClusterName, m.Name, role, cmp.Or(m.Spec.Version, "-"), cmp.Or(m.Status.Phase, "-"), ready, cmp.Or(m.Status.NodeRef.Name, "-"), address,
			age(m.CreationTimestamp, now),
		})
	}
	return ui.Table(w, []string{"CLUSTER", "NAME", "ROLE", "VERSION", "PHASE", "READY", "NODE", "ADDRESS", "AGE"}, rows)
}
