package gitops

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
	stateUnread   = "Unread"
)

// Status returns the status of each repository, by namespace. An empty namespace stands for all.
func (p *Plane) Status(ctx context.Context, namespace string) ([]Status, error) {
	configs, err := p.fluxConfigs(ctx, namespace)
	if err != nil {
		return nil, err
	}
	all := make([]Status, 0, len(configs))
	for i := range configs {
		o, err := p.objects(ctx, configs[i].Namespace)
		if err != nil {
			return nil, err
		}
		all = append(all, Summarize(&configs[i], o))
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

// Objects are what clusters in Git are derived from.
type Objects struct {
	Clusters []anywherev1.Cluster
	// Applied are Kustomizations of Flux. Unread means that the caller may not read them.
	Applied []unstructured.Unstructured
	Unread  bool
	Changes []droverv1.GitChange
}

// Summarize returns the status of a repository. It uses the objects in the namespace of the
// FluxConfig.
func Summarize(c *anywherev1.FluxConfig, o Objects) Status {
	s := repositoryStatus(c)
	names := map[string]*unstructured.Unstructured{}
	for i := range o.Clusters {
		ref := o.Clusters[i].Spec.GitOpsRef
		if o.Clusters[i].Namespace == c.Namespace && ref != nil && ref.Name == c.Name {
			names[o.Clusters[i].Name] = nil
		}
	}
	for i := range o.Applied {
		if o.Applied[i].GetNamespace() == c.Namespace {
			names[o.Applied[i].GetLabels()[anywherev1.GitClusterLabel]] = &o.Applied[i]
		}
	}
	s.Clusters = make([]ClusterStatus, 0, len(names))
	for name, k := range names {
		one := clusterStatus(name, k)
		if o.Unread {
			one = ClusterStatus{Name: name, State: stateUnread, Message: "You may not read Kustomizations, which say what Flux has applied"}
		}
		one.Changes = unfinished(o.Changes, c.Namespace, name)
		s.Clusters = append(s.Clusters, one)
	}
	slices.SortFunc(s.Clusters, func(a, b ClusterStatus) int { return cmp.Compare(a.Name, b.Name) })
	return s
}

// objects reads what the clusters of a namespace are derived from.
func (p *Plane) objects(ctx context.Context, namespace string) (Objects, error) {
	var o Objects
	applied := &unstructured.UnstructuredList{}
	applied.SetGroupVersionKind(Kustomizations)
	err := p.Client.List(ctx, applied, client.InNamespace(namespace), client.HasLabels{anywherev1.GitClusterLabel})
	o.Applied, o.Unread = applied.Items, apierrors.IsForbidden(err)
	if err != nil && !o.Unread && !apimeta.IsNoMatchError(err) {
		return o, fmt.Errorf("listing Kustomizations: %w", err)
	}
	if o.Clusters, err = p.Clusters(ctx, namespace); err != nil {
		return o, err
	}
	changes := &droverv1.GitChangeList{}
	if err := p.Client.List(ctx, changes, client.InNamespace(namespace)); err != nil && !apimeta.IsNoMatchError(err) {
		return o, fmt.Errorf("listing GitChanges: %w", err)
	}
	o.Changes = changes.Items
	return o, nil
}

// clusterStatus derives the status of a cluster from its Kustomization, which may be nil.
func clusterStatus(name string, k *unstructured.Unstructured) ClusterStatus {
	if k == nil {
		return ClusterStatus{Name: name, State: stateNotInGit, Message: "Flux has not applied it"}
	}
	s := ClusterStatus{Name: name}
	s.Revision = AppliedCommit(k)
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

// AppliedCommit returns the commit that a Kustomization has applied last. The revision is that of
// the files of the cluster, and its origin the commit, unless Flux applies the repository as a
// whole.
func AppliedCommit(k *unstructured.Unstructured) string {
	origin, _, _ := unstructured.NestedString(k.Object, "status", "lastAppliedOriginRevision")
	revision, _, _ := unstructured.NestedString(k.Object, "status", "lastAppliedRevision")
	return cmp.Or(origin, revision)
}

// unfinished returns the GitChanges of a cluster that are not done.
func unfinished(all []droverv1.GitChange, namespace, cluster string) []string {
	var out []string
	for i := range all {
		if g := &all[i]; g.Namespace == namespace && g.Spec.Cluster == cluster && !apimeta.IsStatusConditionTrue(g.Status.Conditions, droverv1.GitChangeReady) {
			out = append(out, g.Name)
		}
	}
	return out
}
