package repository

import (
	"fmt"
	"slices"
	"strings"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/base/text"
	"github.com/drover-dev/drover/internal/controllers/gitops/fleet"
)

// shown is how many clusters or problems a message names.
const shown = 3

// facts are what the status of a FluxConfig is made from.
type facts struct {
	// denied is why the FluxConfig isn't connected, or "".
	denied string
	// repository is nil if it doesn't exist yet.
	repository     *sourcev1.GitRepository
	kustomizations []kustomizev1.Kustomization
	// report is nil until the repository was read.
	report *fleet.Report
	// last is the status before.
	last anywherev1.FluxConfigStatus
}

// setStatus writes all conditions.
func setStatus(c *anywherev1.FluxConfig, f *facts) {
	f.last = *c.Status.DeepCopy()
	all := []metav1.Condition{connected(f), fetched(f), clustersApplied(f)}
	all = append(all, ready(all))
	for _, condition := range all {
		condition.ObservedGeneration = c.Generation
		condition.Message = text.Truncate(condition.Message)
		apimeta.SetStatusCondition(&c.Status.Conditions, condition)
	}
	c.Status.ObservedGeneration = c.Generation
	c.Status.Revision = f.revision()
}

// revision returns the newest commit that Flux has fetched.
func (f *facts) revision() string {
	if f.denied != "" || f.repository == nil || f.repository.Status.Artifact == nil {
		return ""
	}
	return f.repository.Status.Artifact.Revision
}

func condition(kind string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message}
}

// connected reports whether an administrator has opened the repository to the namespace.
func connected(f *facts) metav1.Condition {
	if f.denied != "" {
		return condition(anywherev1.RepositoryConnected, metav1.ConditionFalse, anywherev1.RepositoryNotConnectedReason, f.denied)
	}
	return condition(anywherev1.RepositoryConnected, metav1.ConditionTrue, anywherev1.RepositoryConnectedReason, "The repository is open to the namespace")
}

// fetched reports whether Flux has fetched the branch.
func fetched(f *facts) metav1.Condition {
	kind := anywherev1.RepositoryFetched
	if f.denied != "" {
		return condition(kind, metav1.ConditionUnknown, anywherev1.RepositoryNotConnectedReason, "The repository is not connected")
	}
	if f.repository == nil {
		return condition(kind, metav1.ConditionUnknown, anywherev1.RepositoryFetchingReason, "Waiting for Flux to fetch the branch")
	}
	is := apimeta.FindStatusCondition(f.repository.Status.Conditions, fluxmeta.ReadyCondition)
	switch {
	case f.repository.Spec.Suspend:
		return condition(kind, metav1.ConditionFalse, anywherev1.RepositoryFetchFailedReason, "Somebody has suspended the GitRepository")
	case is == nil || is.Status == metav1.ConditionUnknown || is.ObservedGeneration != f.repository.Generation:
		return condition(kind, metav1.ConditionUnknown, anywherev1.RepositoryFetchingReason, "Waiting for Flux to fetch the branch")
	case is.Status == metav1.ConditionFalse:
		return condition(kind, metav1.ConditionFalse, anywherev1.RepositoryFetchFailedReason, text.Sentence(oneLine(is.Message)))
	}
	return condition(kind, metav1.ConditionTrue, anywherev1.RepositoryFetchedReason, "Flux has fetched "+f.revision())
}

// clustersApplied reports whether Flux has applied the newest commit to all clusters of the
// namespace. What needs somebody to act comes first.
func clustersApplied(f *facts) metav1.Condition {
	kind, revision := anywherev1.ClustersApplied, f.revision()
	switch {
	case f.denied != "":
		return condition(kind, metav1.ConditionUnknown, anywherev1.RepositoryNotConnectedReason, "The repository is not connected")
	case revision == "" || f.report == nil || f.report.Revision != revision:
		return condition(kind, metav1.ConditionUnknown, anywherev1.ClustersApplyingReason, "Waiting for Drover to read the newest commit")
	}
	if rejected := append(f.rejected(), f.report.Problems...); len(rejected) > 0 {
		return condition(kind, metav1.ConditionFalse, anywherev1.ClustersRejectedReason, "Not applied: "+text.Clauses(rejected, shown))
	}
	if waiting := f.report.Unconfirmed; len(waiting) > 0 {
		message := fmt.Sprintf("Files of clusters in use were removed: %s; run `drover gitops confirm NAME` to delete a cluster, or restore its files", text.FirstN(waiting, shown))
		return condition(kind, metav1.ConditionFalse, anywherev1.RemovalUnconfirmedReason, message)
	}
	if pending := f.pending(revision); len(pending) > 0 {
		if rejected := f.stillRejected(revision); rejected != nil {
			return *rejected
		}
		message := fmt.Sprintf("Waiting for Flux to apply %s to %s", revision, text.FirstN(pending, shown))
		return condition(kind, metav1.ConditionUnknown, anywherev1.ClustersApplyingReason, message)
	}
	return condition(kind, metav1.ConditionTrue, anywherev1.ClustersAppliedReason, fmt.Sprintf("Flux has applied %s to all clusters of the namespace", revision))
}

// rejected returns the Kustomizations that Flux can't apply. Those of removed clusters are expected
// to fail.
func (f *facts) rejected() []string {
	var all []string
	for _, k := range f.sorted() {
		is := apimeta.FindStatusCondition(k.Status.Conditions, fluxmeta.ReadyCondition)
		removed := slices.Contains(f.report.Unconfirmed, k.Labels[anywherev1.GitClusterLabel])
		if is != nil && is.Status == metav1.ConditionFalse && is.Reason != fluxmeta.DependencyNotReadyReason && is.ObservedGeneration == k.Generation && !removed {
			all = append(all, fmt.Sprintf("cluster %q: %s", k.Name, oneLine(is.Message)))
		}
	}
	return all
}

// stillRejected returns the condition from before if Flux tries a commit again that it rejected, so
// that the condition doesn't alternate.
func (f *facts) stillRejected(revision string) *metav1.Condition {
	last := apimeta.FindStatusCondition(f.last.Conditions, anywherev1.ClustersApplied)
	retries := slices.ContainsFunc(f.kustomizations, func(k kustomizev1.Kustomization) bool {
		return k.Status.LastAttemptedRevision == revision && k.Status.LastAppliedRevision != revision && k.Status.ObservedGeneration == k.Generation
	})
	if !retries || last == nil || last.Reason != anywherev1.ClustersRejectedReason || f.last.Revision != revision {
		return nil
	}
	return last
}

// oneLine replaces line breaks in a message of Flux.
func oneLine(message string) string { return strings.Join(strings.Fields(message), " ") }

// pending returns the Kustomizations that don't have a commit yet.
func (f *facts) pending(revision string) []string {
	var all []string
	for _, k := range f.sorted() {
		if k.Status.LastAppliedRevision != revision || k.Status.ObservedGeneration != k.Generation || !k.DeletionTimestamp.IsZero() {
			all = append(all, k.Name)
		}
	}
	return all
}

func (f *facts) sorted() []kustomizev1.Kustomization {
	return slices.SortedFunc(slices.Values(f.kustomizations), func(a, b kustomizev1.Kustomization) int {
		return slices.Compare([]string{a.Namespace, a.Name}, []string{b.Namespace, b.Name})
	})
}

// ready returns the summary: the first condition that isn't True.
func ready(all []metav1.Condition) metav1.Condition {
	for _, one := range all {
		if one.Status != metav1.ConditionTrue {
			return condition(anywherev1.Ready, one.Status, one.Reason, one.Message)
		}
	}
	return condition(anywherev1.Ready, metav1.ConditionTrue, anywherev1.ReadyReason, all[len(all)-1].Message)
}
