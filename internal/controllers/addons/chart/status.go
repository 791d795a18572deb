package chart

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	"github.com/drover-dev/drover/internal/base/text"
	"github.com/drover-dev/drover/internal/model/addons/desired"
)

// Limits of messages, whatever the size of the fleet. The limit of the schema is 32768.
const (
	maxMessage = 4096
	maxNamed   = 10 // objects
	maxShown   = 3  // problems
)

// setStatus computes the status from the facts.
func (s *scope) setStatus() {
	c := s.chart
	slices.SortFunc(s.after, func(a, b *addonsv1.HelmReleaseProxy) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(s.problems, func(a, b problem) int { return cmp.Compare(a.cluster, b.cluster) })
	if !s.Deleting() {
		if s.selectionErr == nil {
			c.Status.MatchingClusters = references(s.clusters)
		}
		c.Status.ObservedGeneration = c.Generation
		c.Status.Rollout = s.plan.Status
		conditions.Set(c, specsCondition(&s.facts))
		setRollout(c)
	}
	conditions.Set(c, proxiesCondition(s.after))
	conditions.Set(c, readyCondition(c))
}

func references(clusters []*clusterv1.Cluster) []corev1.ObjectReference {
	out := make([]corev1.ObjectReference, 0, len(clusters))
	for _, c := range clusters {
		out = append(out, corev1.ObjectReference{
			APIVersion: clusterv1.GroupVersion.String(), Kind: "Cluster", Namespace: c.Namespace, Name: c.Name,
		})
	}
	return out
}

// specsCondition is HelmReleaseProxySpecsUpToDate. It reports the most severe fact.
func specsCondition(f *facts) metav1.Condition {
	c := metav1.Condition{Type: addonsv1.SpecsUpToDate, Status: metav1.ConditionFalse}
	if f.selectionErr != nil {
		c.Reason, c.Message = addonsv1.ClusterSelectionFailedReason, text.TruncateTo(text.Sentence(f.selectionErr.Error()), maxMessage)
		return c
	}
	for _, reason := range []string{addonsv1.ValueParsingFailedReason, addonsv1.CreationFailedReason, addonsv1.DeletionFailedReason} {
		if message := describeProblems(f.problems, reason); message != "" {
			c.Reason, c.Message = reason, message
			return c
		}
	}
	slices.Sort(f.reinstalling)
	slices.Sort(f.waiting)
	behind := unobserved(f.after)
	switch {
	case len(f.reinstalling) > 0:
		c.Reason, c.Message = addonsv1.ReinstallingReason, "Waiting for releases to be uninstalled from clusters "+text.FirstN(f.reinstalling, maxNamed)
	case len(f.waiting) > 0:
		c.Reason, c.Message = addonsv1.SpecsUpdatingReason, "Rollout has not reached clusters "+text.FirstN(f.waiting, maxNamed)
	case len(behind) > 0:
		c.Reason, c.Message = addonsv1.SpecsUpdatingReason, "Waiting for the controller to observe HelmReleaseProxies "+text.FirstN(behind, maxNamed)
	default:
		c.Status, c.Reason = metav1.ConditionTrue, addonsv1.UpToDateReason
	}
	return c
}

// unobserved returns releases whose controller has not observed their spec.
func unobserved(releases []*addonsv1.HelmReleaseProxy) []string {
	var out []string
	for _, r := range releases {
		if r.Generation != r.Status.ObservedGeneration {
			out = append(out, r.Name)
		}
	}
	return out
}

// describeProblems describes the first problems with a reason and counts the others.
func describeProblems(problems []problem, reason string) string {
	var lines []string
	more := 0
	for _, p := range problems {
		switch {
		case p.reason != reason:
		case len(lines) == maxShown:
			more++
		case p.cluster == "":
			lines = append(lines, problemText(p.err))
		default:
			lines = append(lines, fmt.Sprintf("cluster %s: %s", p.cluster, problemText(p.err)))
		}
	}
	if more > 0 {
		lines = append(lines, fmt.Sprintf("problems on %d more clusters", more))
	}
	return text.TruncateTo(text.Sentence(strings.Join(lines, "; ")), maxMessage)
}

func problemText(err error) string {
	var missing *desired.MissingError
	if errors.As(err, &missing) {
		return missing.Error()
	}
	return text.TruncateTo(err.Error(), maxMessage/(maxShown+1))
}

// proxiesCondition aggregates the releases, as Cluster API does, and names the first of them.
func proxiesCondition(releases []*addonsv1.HelmReleaseProxy) metav1.Condition {
	if len(releases) == 0 {
		return metav1.Condition{Type: addonsv1.ProxiesReady, Status: metav1.ConditionTrue, Reason: addonsv1.ReadyReason}
	}
	c, err := conditions.NewAggregateCondition(releases, clusterv1.ReadyCondition, conditions.TargetConditionType(addonsv1.ProxiesReady))
	if err != nil {
		return metav1.Condition{
			Type: addonsv1.ProxiesReady, Status: metav1.ConditionUnknown, Reason: "InternalError", Message: text.TruncateTo(err.Error(), maxMessage),
		}
	}
	names := make([]string, 0, len(releases))
	for _, r := range releases {
		names = append(names, "HelmReleaseProxy/"+r.Name)
	}
	sources := " (sources: " + text.FirstN(names, maxNamed) + ")"
	c.Message = text.TruncateTo(c.Message, maxMessage-len(sources)) + sources
	return *c
}

// readyCondition summarizes the other two.
func readyCondition(c *addonsv1.HelmChartProxy) metav1.Condition {
	ready, err := conditions.NewSummaryCondition(c, clusterv1.ReadyCondition,
		conditions.ForConditionTypes{addonsv1.SpecsUpToDate, addonsv1.ProxiesReady})
	if err != nil {
		return metav1.Condition{Type: clusterv1.ReadyCondition, Status: metav1.ConditionUnknown, Reason: "InternalError", Message: text.TruncateTo(err.Error(), maxMessage)}
	}
	ready.Message = text.TruncateTo(ready.Message, 2*maxMessage)
	return *ready
}

// setRollout reports the progress of a rollout, if there is one.
func setRollout(c *addonsv1.HelmChartProxy) {
	r := c.Status.Rollout
	if r == nil {
		conditions.Delete(c, addonsv1.RolloutCompleted)
		return
	}
	condition := metav1.Condition{Type: addonsv1.RolloutCompleted, Status: metav1.ConditionFalse, Reason: string(r.Phase), Message: rolloutMessage(r)}
	if r.Phase == addonsv1.RolloutComplete {
		condition.Status = metav1.ConditionTrue
	}
	conditions.Set(c, condition)
}

func rolloutMessage(r *addonsv1.RolloutStatus) string {
	where := fmt.Sprintf("Wave %d of %d is ready on %d clusters and failed on %d", r.Wave, r.Waves, r.Updated, r.Failed)
	switch r.Phase {
	case addonsv1.RolloutComplete:
		return ""
	case addonsv1.RolloutPaused:
		return where + "; to resume, change the spec or the value of annotation " + addonsv1.ResumeRolloutAnnotation
	case addonsv1.RolloutRollingBack:
		return where + "; rolling back all clusters to revision " + r.LastGood
	default:
		return where
	}
}
