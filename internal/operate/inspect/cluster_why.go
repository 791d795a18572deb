package inspect

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// Link is one cause in a chain.
type Link struct {
	Kind      string      `json:"kind"`
	Namespace string      `json:"namespace"`
	Name      string      `json:"name"`
	Condition string      `json:"condition,omitempty"`
	Reason    string      `json:"reason,omitempty"`
	Message   string      `json:"message"`
	Since     metav1.Time `json:"since,omitzero"`
}

// String returns the link as a sentence.
func (l Link) String() string {
	if l.Condition == "" {
		return fmt.Sprintf("%s %s: %s", l.Kind, l.Name, oneLine(l.Message))
	}
	return fmt.Sprintf("%s %s is not %s: %s", l.Kind, l.Name, l.Condition, cmp.Or(oneLine(l.Message), l.Reason))
}

// oneLine turns a multi-line message, as Cluster API writes them, into a part of a sentence.
func oneLine(message string) string { return strings.Join(strings.Fields(message), " ") }

// Answer explains why a cluster is not ready. Each link of the chain is caused by the next one.
type Answer struct {
	Ready bool   `json:"ready"`
	Chain []Link `json:"chain,omitempty"`
	// Next is the recommended action about the last link.
	Next string `json:"next"`
	// Git lists what keeps changes in Git from reaching the cluster, ready or not.
	Git []Link `json:"git,omitempty"`
}

// Deepest returns the root cause.
func (a Answer) Deepest() Link {
	if len(a.Chain) == 0 {
		return Link{}
	}
	return a.Chain[len(a.Chain)-1]
}

// Why follows the tree of a cluster down to the root cause. It depends on the tree and the time
// only.
func Why(root *Node, now time.Time) Answer {
	if root.Well() {
		return Answer{Ready: true, Next: "nothing: the cluster is ready", Git: root.inGit()}
	}
	var chain []Link
	for n := root; n != nil; {
		link, below := n.cause()
		chain, n = append(chain, link), below
	}
	answer := Answer{Chain: chain, Git: root.inGit()}
	answer.Next = advice(root, answer.Deepest(), now)
	return answer
}

// cause returns why a node is not ready, and the node below that decides it, if any.
func (n *Node) cause() (Link, *Node) {
	link := Link{Kind: n.Kind, Namespace: n.Namespace, Name: n.Name, Since: metav1.NewTime(n.since())}
	switch c := n.unmet(); {
	case n.Deleting:
		link.Reason, link.Message = reasonDeleting, "being deleted"
		if c := apimeta.FindStatusCondition(n.Conditions, clusterv1.DeletingCondition); c != nil && c.Status == metav1.ConditionTrue && c.Message != "" {
			link.Reason, link.Message, link.Since = c.Reason, "being deleted: "+c.Message, c.LastTransitionTime
		}
		return link, n.leftBelow()
	case n.Failure != "":
		link.Reason, link.Message = reasonFailed, n.Failure
		return link, nil
	case n.Paused:
		link.Reason, link.Message = reasonPaused, "reconciliation is paused"
		return link, nil
	case len(n.Conditions) == 0:
		link.Reason, link.Message = reasonUnseen, "waiting for the controller to observe it"
		return link, nil
	case n.Behind:
		link.Reason, link.Message = reasonBehind, "waiting for the controller to observe the latest spec"
		return link, nil
	default:
		link.Condition, link.Reason, link.Message = c.Type, c.Reason, c.Message
		return link, n.decides(c.Type)
	}
}

// decides returns the child that a condition depends on: the worst one, and of several the one that
// is so longest.
func (n *Node) decides(condition string) *Node {
	var bad []*Node
	for _, c := range n.Children {
		if slices.Contains(c.Answers, condition) && !c.Well() {
			bad = append(bad, c)
		}
	}
	return worst(bad)
}

// leftBelow returns the child that a node waits for in order to be deleted.
func (n *Node) leftBelow() *Node {
	var left []*Node
	for _, c := range n.Children {
		if c.Deleting {
			left = append(left, c)
		}
	}
	return worst(left)
}

func worst(nodes []*Node) *Node {
	if len(nodes) == 0 {
		return nil
	}
	return slices.MinFunc(nodes, func(a, b *Node) int {
		return cmp.Or(cmp.Compare(a.rank(), b.rank()), a.since().Compare(b.since()), cmp.Compare(a.Name, b.Name))
	})
}

// rank orders failures before unmet conditions, unknown ones and objects without conditions.
func (n *Node) rank() int {
	switch c := n.unmet(); {
	case n.Failure != "" || n.Paused:
		return 0
	case c != nil && c.Status == metav1.ConditionFalse:
		return 1
	case c != nil:
		return 2
	default:
		return 3
	}
}
