package inspect

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	infrav1 "github.com/drover-dev/drover/api/infrastructure/v1beta1"
)

// Entry is an event or a change of a condition.
type Entry struct {
	Time metav1.Time `json:"time"`
	// Seconds since the Cluster was created.
	Seconds float64 `json:"seconds"`
	Object  string  `json:"object"`
	What    string  `json:"what"`
	Warning bool    `json:"warning,omitempty"`
}

// Stage is a step toward a ready cluster.
type Stage struct {
	Name string      `json:"name"`
	At   metav1.Time `json:"at"`
	// Seconds since the previous stage, or since Begin if that is set.
	Seconds float64     `json:"seconds"`
	Begin   metav1.Time `json:"begin,omitzero"`
}

// Timeline is the history of a cluster, oldest first.
type Timeline struct {
	Cluster string  `json:"cluster"`
	Stages  []Stage `json:"stages"`
	Entries []Entry `json:"entries"`
}

// milestones are the conditions that end a stage, by the kind of object that has them.
var milestones = []struct{ kind, condition, name string }{
	{kindInfra, infrav1.NetworkInfrastructureReady, "endpoint reserved"},
	{kindDevice, infrav1.InstanceReady, "first machine provisioned"},
	{kindCluster, anywherev1.ControlPlaneInitialized, "API server available"},
	{kindCluster, anywherev1.DefaultCNIConfigured, "network installed"},
	{kindCluster, anywherev1.ControlPlaneReady, "control plane ready"},
	{kindCluster, anywherev1.WorkersReady, "workers ready"},
	{kindCluster, anywherev1.Ready, "ready"},
}

// NewTimeline returns the timeline of a tree and of events. A condition contributes its last change
// only.
func NewTimeline(root *Node, events []corev1.Event) Timeline {
	t := Timeline{Cluster: root.Namespace + "/" + root.Name, Stages: stages(root)}
	root.Walk(func(n *Node, _ int) {
		t.Entries = append(t.Entries, Entry{Time: n.Created, Object: n.Kind + "/" + n.Name, What: "created"})
		for _, kind := range order[n.Kind] {
			for _, c := range n.Conditions {
				if c.Type == kind {
					t.Entries = append(t.Entries, Entry{Time: c.LastTransitionTime, Object: n.Kind + "/" + n.Name, What: transition(c)})
				}
			}
		}
	})
	for i := range events {
		e := &events[i]
		t.Entries = append(t.Entries, Entry{
			Time: eventTime(e), Object: e.InvolvedObject.Kind + "/" + e.InvolvedObject.Name,
			What: strings.TrimSpace(e.Reason + ": " + e.Message), Warning: e.Type == corev1.EventTypeWarning,
		})
	}
	slices.SortStableFunc(t.Entries, func(a, b Entry) int { return a.Time.Compare(b.Time.Time) })
	for i := range t.Entries {
		t.Entries[i].Seconds = t.Entries[i].Time.Sub(root.Created.Time).Seconds()
	}
	return t
}

func transition(c metav1.Condition) string {
	if c.Status == metav1.ConditionTrue {
		return c.Type
	}
	return fmt.Sprintf("not %s: %s", c.Type, cmp.Or(c.Message, c.Reason))
}

// stages returns the milestones that were reached, oldest first.
func stages(root *Node) []Stage {
	out := []Stage{{Name: "created", At: root.Created}}
	for _, m := range milestones {
		if at, ok := firstTrue(root, m.kind, m.condition); ok {
			out = append(out, Stage{Name: m.name, At: at})
		}
	}
	slices.SortStableFunc(out, func(a, b Stage) int { return a.At.Compare(b.At.Time) })
	for i := 1; i < len(out); i++ {
		out[i].Seconds = out[i].At.Sub(out[i-1].At.Time).Seconds()
	}
	return out
}

// firstTrue returns when the first object of a kind met a condition.
func firstTrue(root *Node, kind, condition string) (first metav1.Time, found bool) {
	root.Walk(func(n *Node, _ int) {
		for _, c := range n.Conditions {
			if n.Kind != kind || c.Type != condition || c.Status != metav1.ConditionTrue {
				continue
			}
			if !found || c.LastTransitionTime.Before(&first) {
				first, found = c.LastTransitionTime, true
			}
		}
	})
	return first, found
}

func eventTime(e *corev1.Event) metav1.Time {
	switch {
	case !e.LastTimestamp.IsZero():
		return e.LastTimestamp
	case !e.EventTime.IsZero():
		return metav1.NewTime(e.EventTime.Time)
	default:
		return e.CreationTimestamp
	}
}

// Timeline reads the history of a cluster.
func (p *Plane) Timeline(ctx context.Context, c *anywherev1.Cluster) (Timeline, error) {
	root, err := p.Tree(ctx, c)
	if err != nil {
		return Timeline{}, err
	}
	return p.History(ctx, root, c.Namespace)
}

// History reads the events about the objects of a cluster, which are in the given namespace and in
// that of the system, and returns its timeline.
func (p *Plane) History(ctx context.Context, root *Node, namespace string) (Timeline, error) {
	var events []corev1.Event
	for _, in := range slices.Compact([]string{namespace, anywherev1.SystemNamespace}) {
		list := &corev1.EventList{}
		if err := p.Client.List(ctx, list, client.InNamespace(in)); err != nil && !apierrors.IsForbidden(err) {
			return Timeline{}, wrap(err, "listing events in %q", in)
		}
		for i := range list.Items {
			if concerns(&list.Items[i], root) {
				events = append(events, list.Items[i])
			}
		}
	}
	return NewTimeline(root, events), nil
}

// concerns reports whether an event is about an object of the cluster.
func concerns(e *corev1.Event, root *Node) bool {
	found := false
	root.Walk(func(n *Node, _ int) {
		kind := n.Kind
		if kind == kindCAPI {
			kind = clusterv1.ClusterKind
		}
		found = found || e.InvolvedObject.Kind == kind && e.InvolvedObject.Name == n.Name && e.InvolvedObject.Namespace == n.Namespace
	})
	return found
}
