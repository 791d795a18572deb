package gitops

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	droverv1 "github.com/drover-dev/drover/api/drover/v1alpha1"
	"github.com/drover-dev/drover/internal/model/gitops"
	"github.com/drover-dev/drover/internal/model/spec"
)

// Status is what Flux has applied from a repository to one namespace.
type Status struct {
	Namespace  string `json:"namespace"`
	FluxConfig string `json:"fluxConfig"`
	URL        string `json:"url,omitempty"`
	Branch     string `json:"branch"`
	// Revision is the newest commit that Flux has fetched.
	Revision string `json:"revision,omitempty"`
	// State is the reason of the first condition that is not met, or Ready.
	State   string `json:"state"`
	Message string `json:"message,omitempty"`
	// Compared is the newest commit of the branch, if the caller may read the credentials of the
	// repository and the plane was compared with it. CompareError says why that failed.
	Compared     string `json:"compared,omitempty"`
	CompareError string `json:"compareError,omitempty"`
	// Unconfirmed is set if the deletion of a cluster waits for `drover gitops confirm`.
	Unconfirmed bool            `json:"unconfirmed,omitempty"`
	Clusters    []ClusterStatus `json:"clusters"`
}

// ClusterStatus is what Flux has applied to one cluster.
type ClusterStatus struct {
	Name string `json:"name"`
	// Revision is the commit that Flux has applied.
	Revision string `json:"revision,omitempty"`
	State    string `json:"state"`
	Message  string `json:"message,omitempty"`
	// Changes are GitChanges that are not done.
	Changes []string `json:"changes,omitempty"`
	// Differences are the first fields in which the plane differs from Git, and MoreDifferences counts
	// the rest.
	Differences     []gitops.FieldChange `json:"differences,omitempty"`
	MoreDifferences int                  `json:"moreDifferences,omitempty"`
	// Missing is set if the newest commit doesn't have the cluster.
	Missing bool `json:"missing,omitempty"`
}

// States of a repository or a cluster that are no reason of a condition.
const (
	stateReady    = "Ready"
	stateUnknown  = "Unobserved"
	stateNotInGit = "NotApplied"
)

// Status returns the status of each repository, by namespace. An empty namespace stands for all.
func (p *Plane) Status(ctx context.Context, namespace string) ([]Status, error) {
	configs, err := p.fluxConfigs(ctx, namespace)
	if err != nil {
		return nil, err
	}
	all := make([]Status, 0, len(configs))
	for i := range configs {
		one := repositoryStatus(&configs[i])
		if one.Clusters, err = p.clusterStatuses(ctx, &configs[i]); err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	slices.SortFunc(all, func(a, b Status) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.FluxConfig, b.FluxConfig))
	})
	return all, nil
}

// repositoryStatus derives the status of a repository from its FluxConfig.
func repositoryStatus(c *anywherev1.FluxConfig) Status {
	s := Status{Namespace: c.Namespace, FluxConfig: c.Name, Branch: cmp.Or(c.Spec.Branch, spec.DefaultFluxBranch), Revision: c.Status.Revision}
	switch {
	case c.Spec.Git != nil:
		s.URL = c.Spec.Git.RepositoryURL
	case c.Spec.Github != nil:
		s.URL = gitHubURL + c.Spec.Github.Owner + "/" + c.Spec.Github.Repository
	}
	s.State, s.Message = stateOf(c.Status.Conditions, anywherev1.RepositoryConnected, anywherev1.RepositoryFetched, anywherev1.ClustersApplied)
	s.Unconfirmed = s.State == anywherev1.RemovalUnconfirmedReason
	return s
}

// stateOf returns the reason and the message of the first condition that is not met.
func stateOf(conditions []metav1.Condition, kinds ...string) (state, message string) {
	for _, kind := range kinds {
		c := apimeta.FindStatusCondition(conditions, kind)
		if c == nil {
			return stateUnknown, "Waiting for the controller"
		}
		if c.Status != metav1.ConditionTrue {
			return c.Reason, c.Message
		}
	}
	return stateReady, ""
}

// clusterStatuses returns the clusters of a FluxConfig: those that exist, and those that Flux could
// not create.
func (p *Plane) clusterStatuses(ctx context.Context, c *anywherev1.FluxConfig) ([]ClusterStatus, error) {
	applied, err := p.list(ctx, kustomizations, client.InNamespace(c.Namespace), client.HasLabels{anywherev1.GitClusterLabel})
	if err != nil {
		return nil, err
	}
	clusters, err := p.Clusters(ctx, c.Namespace)
	if err != nil {
		return nil, err
	}
	changes := &droverv1.GitChangeList{}
	if err := p.Client.List(ctx, changes, client.InNamespace(c.Namespace)); err != nil && !apimeta.IsNoMatchError(err) {
		return nil, fmt.Errorf("listing GitChanges: %w", err)
	}
	names := map[string]*unstructured.Unstructured{}
	for i := range clusters {
		if ref := clusters[i].Spec.GitOpsRef; ref != nil && ref.Name == c.Name {
			names[clusters[i].Name] = nil
		}
	}
	for i := range applied {
		names[applied[i].GetLabels()[anywherev1.GitClusterLabel]] = &applied[i]
	}
	out := make([]ClusterStatus, 0, len(names))
	for name, k := range names {
		one := clusterStatus(name, k)
		one.Changes = unfinished(changes.Items, name)
		out = append(out, one)
	}
	slices.SortFunc(out, func(a, b ClusterStatus) int { return cmp.Compare(a.Name, b.Name) })
	return out, nil
}

// clusterStatus derives the status of a cluster from its Kustomization, which may be nil.
func clusterStatus(name string, k *unstructured.Unstructured) ClusterStatus {
	if k == nil {
		return ClusterStatus{Name: name, State: stateNotInGit, Message: "Flux has not applied it"}
	}
	s := ClusterStatus{Name: name}
	s.Revision = appliedCommit(k)
	status := struct {
		Conditions []metav1.Condition `json:"conditions"`
	}{}
	content, _, _ := unstructured.NestedMap(k.Object, "status")
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, &status); err != nil {
		return ClusterStatus{Name: name, Revision: s.Revision, State: stateUnknown, Message: err.Error()}
	}
	s.State, s.Message = stateOf(status.Conditions, stateReady)
	return s
}

// appliedCommit returns the commit that Flux has applied last. The revision is that of the files of
// the cluster, and its origin the commit, unless Flux applies the repository as a whole.
func appliedCommit(k *unstructured.Unstructured) string {
	origin, _, _ := unstructured.NestedString(k.Object, "status", "lastAppliedOriginRevision")
	revision, _, _ := unstructured.NestedString(k.Object, "status", "lastAppliedRevision")
	return cmp.Or(origin, revision)
}

// unfinished returns the GitChanges of a cluster that are not done.
func unfinished(all []droverv1.GitChange, cluster string) []string {
	var out []string
	for i := range all {
		if g := &all[i]; g.Spec.Cluster == cluster && !apimeta.IsStatusConditionTrue(g.Status.Conditions, droverv1.GitChangeReady) {
			out = append(out, g.Name)
		}
	}
	return out
}
