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
	"github.com/drover-dev/drover/internal/model/addons/desired"
)

// The bounds of messages, whatever the size of the fleet. The schema's own limit is 32768.
const (
	maxMessage = 4096
	maxNamed   = 10 // objects
	maxShown   = 3  // problems
)

// report turns the facts of this reconcile into status.
func (s *scope) report() {
	c := s.chart
	slices.SortFunc(s.after, func(a, b *addonsv1.HelmReleaseProxy) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(s.problems, func(a, b problem) int { return cmp.Compare(a.cluster, b.cluster) })
	if !s.deleting() {
		if s.unselectable == nil {
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

// specsCondition is the condition HelmReleaseProxySpecsUpToDate. The first that holds is told, the worst first.
func specsCondition(f *facts) metav1.Condition {
	c := metav1.Condition{Type: addonsv1.SpecsUpToDate, Status: metav1.ConditionFalse}
	if f.unselectable != nil {
		c.Reason, c.Message = addonsv1.ClusterSelectionFailedReason, bounded(f.unselectable.Error())
		return c
	}
	for _, reason := range []string{addonsv1.ValueParsingFailedReason, addonsv1.CreationFailedReason, addonsv1.DeletionFailedReason} {
		if text := describe(f.problems, reason); text != "" {
			c.Reason, c.Message = reason, text
			return c
		}
	}
	slices.Sort(f.reinstalling)
	slices.Sort(f.waiting)
	behind := lagging(f.after)
	switch {
	case len(f.reinstalling) > 0:
		c.Reason, c.Message = addonsv1.ReinstallingReason, "Waiting for releases to be uninstalled from clusters "+some(f.reinstalling)
	case len(f.waiting) > 0:
		c.Reason, c.Message = addonsv1.SpecsUpdatingReason, "Rollout has not reached clusters "+some(f.waiting)
	case len(behind) > 0:
		c.Reason, c.Message = addonsv1.SpecsUpdatingReason, "Waiting for the controller to observe HelmReleaseProxies "+some(behind)
	default:
		c.Status, c.Reason = metav1.ConditionTrue, addonsv1.UpToDateReason
	}
	return c
}

// lagging are releases whose controller has not seen their spec yet.
func lagging(releases []*addonsv1.HelmReleaseProxy) []string {
	var out []string
	for _, r := range releases {
		if r.Generation != r.Status.ObservedGeneration {
			out = append(out, r.Name)
		}
	}
	return out
}

// describe tells of a few of the problems with a reason, and how many more there are.
func describe(problems []problem, reason string) string {
	var lines []string
	more := 0
	for _, p := range problems {
		switch {
		case p.reason != reason:
		case len(lines) == maxShown:
			more++
		case p.cluster == "":
			lines = append(lines, short(p.err))
		default:
			lines = append(lines, fmt.Sprintf("cluster %s: %s", p.cluster, short(p.err)))
		}
	}
	if more > 0 {
		lines = append(lines, fmt.Sprintf("problems on %d more clusters", more))
	}
	return bounded(strings.Join(lines, "; "))
}

func short(err error) string {
	var missing *desired.MissingError
	if errors.As(err, &missing) {
		return missing.Error()
	}
	return cut(err.Error(), maxMessage/(maxShown+1))
}

// proxiesCondition sums up the releases, as Cluster API does, and names some of them.
func proxiesCondition(releases []*addonsv1.HelmReleaseProxy) metav1.Condition {
	if len(releases) == 0 {
		return metav1.Condition{Type: addonsv1.ProxiesReady, Status: metav1.ConditionTrue, Reason: addonsv1.ReadyReason}
	}
	c, err := conditions.NewAggregateCondition(releases, clusterv1.ReadyCondition, conditions.TargetConditionType(addonsv1.ProxiesReady))
	if err != nil {
		return metav1.Condition{
			Type: addonsv1.ProxiesReady, Status: metav1.ConditionUnknown, Reason: "InternalError", Message: bounded(err.Error()),
		}
	}
	names := make([]string, 0, len(releases))
	for _, r := range releases {
		names = append(names, "HelmReleaseProxy/"+r.Name)
	}
	sources := " (sources: " + some(names) + ")"
	c.Message = cut(c.Message, maxMessage-len(sources)) + sources
	return *c
}

// readyCondition sums up the other two.
func readyCondition(c *addonsv1.HelmChartProxy) metav1.Condition {
	ready, err := conditions.NewSummaryCondition(c, clusterv1.ReadyCondition,
		conditions.ForConditionTypes{addonsv1.SpecsUpToDate, addonsv1.ProxiesReady})
	if err != nil {
		return metav1.Condition{Type: clusterv1.ReadyCondition, Status: metav1.ConditionUnknown, Reason: "InternalError", Message: bounded(err.Error())}
	}
	ready.Message = cut(ready.Message, 2*maxMessage)
	return *ready
}

// setRollout tells how far a rollout is, if there is one.
func setRollout(c *addonsv1.HelmChartProxy) {
	r := c.Status.Rollout
	if r == nil {
		conditions.Delete(c, addonsv1.RolloutCompleted)
		return
	}
	condition := metav1.Condition{Type: addonsv1.RolloutCompleted, Status: metav1.ConditionFalse, Reason: string(r.Phase), Message: tale(r)}
	if r.Phase == addonsv1.RolloutComplete {
		condition.Status = metav1.ConditionTrue
	}
	conditions.Set(c, condition)
}

func tale(r *addonsv1.RolloutStatus) string {
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

// some names a few and counts the rest.
func some(names []string) string {
	if len(names) <= maxNamed {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:maxNamed], ", "), len(names)-maxNamed)
}

func bounded(text string) string { return cut(text, maxMessage) }

// cut shortens a text to so many bytes and no half characters.
func cut(text string, longest int) string {
	const mark = "…"
	if len(text) <= longest {
		return text
	}
	return strings.ToValidUTF8(text[:max(0, longest-len(mark))], "") + mark
}
