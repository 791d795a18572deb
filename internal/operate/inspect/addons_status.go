package inspect

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/annotations"
	"sigs.k8s.io/cluster-api/util/conditions"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	"github.com/drover-dev/drover/internal/model/addons/index"
)

// AddOn is the status of a HelmChartProxy.
type AddOn struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Chart     string `json:"chart"`
	Tool      string `json:"tool"`
	// Ready is True if the current spec is ready on all clusters, else False or Unknown.
	Ready   string `json:"ready"`
	Message string `json:"message,omitempty"`
	Paused  bool   `json:"paused,omitempty"`
	// Matched is how many clusters are selected, ReadyOn and FailedOn on how many of them the
	// add-on is ready and has failed.
	Matched  int                     `json:"matched"`
	ReadyOn  int                     `json:"readyOn"`
	FailedOn int                     `json:"failedOn"`
	Rollout  *addonsv1.RolloutStatus `json:"rollout,omitempty"`
	Clusters []OnCluster             `json:"clusters"`
}

// OnCluster is the status of an add-on on one cluster.
type OnCluster struct {
	Cluster   string `json:"cluster"`
	Release   string `json:"release,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	Version   string `json:"version,omitempty"`
	Revision  int    `json:"revision,omitempty"`
	Status    string `json:"status,omitempty"`
	Ready     string `json:"ready"`
	Reason    string `json:"reason,omitempty"`
	Message   string `json:"message,omitempty"`
}

// AddOnStatus returns the status of a HelmChartProxy.
func (p *Plane) AddOnStatus(ctx context.Context, hcp *addonsv1.HelmChartProxy) (AddOn, error) {
	releases, err := index.Releases{Reader: p.Client}.OfChart(ctx, client.ObjectKeyFromObject(hcp))
	if err != nil {
		return AddOn{}, err
	}
	return SummarizeAddOn(hcp, releases), nil
}

// SummarizeAddOn returns the status of a HelmChartProxy with its releases.
func SummarizeAddOn(hcp *addonsv1.HelmChartProxy, releases []addonsv1.HelmReleaseProxy) AddOn {
	out := AddOn{
		Namespace: hcp.Namespace, Name: hcp.Name, Chart: hcp.Spec.ChartName, Tool: string(cmp.Or(hcp.Spec.Tool, addonsv1.Helm)),
		Paused: annotations.HasPaused(hcp), Matched: len(hcp.Status.MatchingClusters), Rollout: hcp.Status.Rollout, Clusters: []OnCluster{},
	}
	out.Ready, out.Message = readiness(hcp, hcp.Status.ObservedGeneration)
	known := map[string]bool{}
	for i := range releases {
		on := ReleaseStatus(&releases[i])
		known[on.Cluster] = true
		switch {
		case on.Ready == string(metav1.ConditionTrue):
			out.ReadyOn++
		case on.Reason == addonsv1.InstallOrUpgradeFailedReason:
			out.FailedOn++
		}
		out.Clusters = append(out.Clusters, on)
	}
	for _, cluster := range hcp.Status.MatchingClusters {
		if !known[cluster.Name] {
			out.Clusters = append(out.Clusters, OnCluster{Cluster: cluster.Name, Ready: string(metav1.ConditionUnknown), Message: "Waiting for the first reconciliation"})
		}
	}
	slices.SortFunc(out.Clusters, func(a, b OnCluster) int { return cmp.Compare(a.Cluster, b.Cluster) })
	return out
}

// conditioned is an object with conditions.
type conditioned interface {
	client.Object
	conditions.Getter
}

// readiness returns the Ready condition, or Unknown if it is about an older spec.
func readiness(o conditioned, observed int64) (status, message string) {
	ready := conditions.Get(o, clusterv1.ReadyCondition)
	if ready == nil || observed != o.GetGeneration() {
		return string(metav1.ConditionUnknown), fmt.Sprintf("Waiting for the controller to observe generation %d", o.GetGeneration())
	}
	return string(ready.Status), oneLine(ready.Message)
}

// ReleaseStatus returns the status of a release.
func ReleaseStatus(r *addonsv1.HelmReleaseProxy) OnCluster {
	out := OnCluster{
		Cluster: r.Spec.ClusterRef.Name, Release: r.Spec.ReleaseName, Namespace: r.Spec.ReleaseNamespace, Version: r.Spec.Version,
		Revision: r.Status.Revision, Status: r.Status.Status,
	}
	if r.Status.Applied != nil {
		out.Version = r.Status.Applied.Version
	}
	out.Ready, out.Message = readiness(r, r.Status.ObservedGeneration)
	out.Reason = conditions.GetReason(r, addonsv1.ReleaseReady)
	for _, name := range []string{addonsv1.ClusterAvailable, addonsv1.ReleaseReady} {
		if c := conditions.Get(r, name); c != nil && c.Status != metav1.ConditionTrue && out.Ready == string(metav1.ConditionFalse) {
			out.Reason, out.Message = c.Reason, oneLine(c.Message)
			break
		}
	}
	if !r.DeletionTimestamp.IsZero() {
		out.Message = strings.TrimSuffix("Deleting: "+out.Message, ": ")
	}
	return out
}

// Progress describes the progress of the rollout. It is empty if the add-on has none.
func (a AddOn) Progress() string {
	r := a.Rollout
	if r == nil {
		return ""
	}
	text := fmt.Sprintf("%s, wave %d of %d, ready on %d", r.Phase, r.Wave, max(r.Waves, r.Wave), r.Updated)
	if r.Failed > 0 {
		text += fmt.Sprintf(", failed on %d", r.Failed)
	}
	return text
}

// AwaitAddOn calls done with the status of an add-on, once immediately and after each change, until
// done returns true or the context ends.
func (p *Plane) AwaitAddOn(ctx context.Context, hcp *addonsv1.HelmChartProxy, done func(AddOn) bool) error {
	for {
		watch, err := p.Client.Watch(ctx, &addonsv1.HelmChartProxyList{}, client.InNamespace(hcp.Namespace),
			client.MatchingFields{"metadata.name": hcp.Name})
		if err != nil {
			return fmt.Errorf("watching add-on %q: %w", hcp.Name, err)
		}
		for open := true; open; _, open = <-watch.ResultChan() {
			if err := p.Client.Get(ctx, client.ObjectKeyFromObject(hcp), hcp); err != nil {
				watch.Stop()
				return fmt.Errorf("reading add-on %q: %w", hcp.Name, err)
			}
			status, err := p.AddOnStatus(ctx, hcp)
			if err != nil || done(status) {
				watch.Stop()
				return err
			}
		}
		watch.Stop()
		if ctx.Err() != nil {
			return fmt.Errorf("waiting for add-on %q: %w", hcp.Name, ctx.Err())
		}
	}
}
