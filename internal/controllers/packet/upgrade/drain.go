package upgrade

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// cordonedAnnotation is on nodes that an upgrade has cordoned, with the time. A node that somebody
// else has cordoned stays so.
const cordonedAnnotation = "upgrade.drover.dev/cordoned"

// cordonedAt returns when an upgrade has cordoned a node, or zero.
func cordonedAt(n *corev1.Node) time.Time {
	at, err := time.Parse(time.RFC3339, n.Annotations[cordonedAnnotation])
	if err != nil {
		return time.Time{}
	}
	return at
}

// cordon makes a node unschedulable.
func cordon(ctx context.Context, workload client.Client, n *corev1.Node, now time.Time) error {
	if !cordonedAt(n).IsZero() {
		return nil
	}
	return patchNode(ctx, workload, n, func(n *corev1.Node) {
		if n.Annotations == nil {
			n.Annotations = map[string]string{}
		}
		n.Annotations[cordonedAnnotation] = now.UTC().Format(time.RFC3339)
		if n.Spec.Unschedulable {
			n.Annotations[foreignAnnotation] = ""
		}
		n.Spec.Unschedulable = true
	})
}

// foreignAnnotation is on nodes that were cordoned before their upgrade.
const foreignAnnotation = "upgrade.drover.dev/cordoned-before"

// uncordon reverts cordon.
func uncordon(ctx context.Context, workload client.Client, n *corev1.Node) error {
	if _, cordoned := n.Annotations[cordonedAnnotation]; !cordoned {
		return nil
	}
	return patchNode(ctx, workload, n, func(n *corev1.Node) {
		if _, foreign := n.Annotations[foreignAnnotation]; !foreign {
			n.Spec.Unschedulable = false
		}
		delete(n.Annotations, cordonedAnnotation)
		delete(n.Annotations, foreignAnnotation)
	})
}

func patchNode(ctx context.Context, workload client.Client, n *corev1.Node, change func(*corev1.Node)) error {
	before := n.DeepCopy()
	change(n)
	if err := workload.Patch(ctx, n, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("patching node %q: %w", n.Name, err)
	}
	return nil
}

// evict evicts Pods, and returns why the last eviction was denied, or "".
func evict(ctx context.Context, workload client.Client, pods []corev1.Pod) (blocked string, err error) {
	for i := range pods {
		if !pods[i].DeletionTimestamp.IsZero() {
			continue
		}
		eviction := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: pods[i].Namespace, Name: pods[i].Name}}
		err := workload.SubResource("eviction").Create(ctx, &pods[i], eviction)
		switch {
		case apierrors.IsTooManyRequests(err):
			blocked = fmt.Sprintf("Pod %s/%s may not be evicted: %s", pods[i].Namespace, pods[i].Name, err)
		case client.IgnoreNotFound(err) != nil:
			return "", fmt.Errorf("evicting Pod %s/%s: %w", pods[i].Namespace, pods[i].Name, err)
		}
	}
	return blocked, nil
}

// podsToEvict returns the Pods of a node that would be created elsewhere.
func podsToEvict(ctx context.Context, workload client.Client, node string) ([]corev1.Pod, error) {
	all := &corev1.PodList{}
	if err := workload.List(ctx, all, client.MatchingFields{"spec.nodeName": node}); err != nil {
		return nil, fmt.Errorf("listing the Pods of node %q: %w", node, err)
	}
	var out []corev1.Pod
	for i := range all.Items {
		if all.Items[i].Spec.NodeName == node && isEvictable(&all.Items[i]) {
			out = append(out, all.Items[i])
		}
	}
	return out, nil
}

// isEvictable leaves out what a node has by itself: static Pods, those of DaemonSets, and those
// that have ended.
func isEvictable(p *corev1.Pod) bool {
	if _, static := p.Annotations[corev1.MirrorPodAnnotationKey]; static {
		return false
	}
	if owner := metav1.GetControllerOf(p); owner != nil && owner.Kind == "DaemonSet" {
		return false
	}
	return p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed
}

// isAlone reports whether no other node accepts the Pods of a node.
func isAlone(ctx context.Context, workload client.Client, node *corev1.Node) (bool, error) {
	all := &corev1.NodeList{}
	if err := workload.List(ctx, all); err != nil {
		return false, fmt.Errorf("listing nodes: %w", err)
	}
	return !slices.ContainsFunc(all.Items, func(other corev1.Node) bool { return acceptsPodsOf(&other, node) }), nil
}

// acceptsPodsOf reports whether another node is ready, and has no taint that Pods of a node need
// not tolerate.
func acceptsPodsOf(other, node *corev1.Node) bool {
	if other.Name == node.Name || other.Spec.Unschedulable || !isReady(other) {
		return false
	}
	return !slices.ContainsFunc(other.Spec.Taints, func(t corev1.Taint) bool {
		return t.Effect != corev1.TaintEffectPreferNoSchedule && !slices.ContainsFunc(node.Spec.Taints, func(own corev1.Taint) bool { return own.MatchTaint(&t) && own.Value == t.Value })
	})
}
