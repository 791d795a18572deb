package machine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/controllers/clustercache"

	infrav1 "github.com/drover-dev/drover/api/infrastructure/v1beta1"
	"github.com/drover-dev/drover/internal/metal/client"
)

// uninitialized is the taint of a node whose kubelet expects a cloud controller.
const uninitialized = "node.cloudprovider.kubernetes.io/uninitialized"

// retryNode is when to retry after a failed request to a workload cluster.
const retryNode = 10 * time.Second

// Workloads connects to workload clusters.
type Workloads interface {
	GetClient(ctx context.Context, cluster ctrlclient.ObjectKey) (ctrlclient.Client, error)
	Watch(ctx context.Context, cluster ctrlclient.ObjectKey, watcher clustercache.Watcher) error
}

// adoptNode does for the machine's node what a cloud controller manager would. It sets the provider
// ID if the userdata did not, the addresses if the kubelet leaves them to others, and labels for
// the type and location of the machine; then it removes the taint that keeps Pods out. Cluster API
// needs the provider ID to match node and Machine.
//
// A cluster without a connection is no failure, since connecting is an event, and failures in a
// workload cluster say nothing about the device. So this step never holds up the others.
func (c *Controller) adoptNode(ctx context.Context, s *scope) error {
	if c.Workloads == nil || !s.owner.runsNode() || s.device.State != string(infrav1.InstanceActive) {
		return nil
	}
	err := c.initializeNode(ctx, s)
	switch {
	case err == nil || errors.Is(err, clustercache.ErrClusterNotConnected):
	case apierrors.IsConflict(err):
		s.retryAfter(time.Second) // kubelets write often in their first seconds
	default:
		ctrl.LoggerFrom(ctx).Info("Initializing the node failed", "error", err.Error())
		s.retryAfter(retryNode)
	}
	return nil
}

func (c *Controller) initializeNode(ctx context.Context, s *scope) error {
	key := ctrlclient.ObjectKeyFromObject(s.cluster)
	workload, err := c.Workloads.GetClient(ctx, key)
	if err != nil {
		return fmt.Errorf("connecting to cluster %q: %w", key, err)
	}
	if err := c.nodes.watch(ctx, c, key); err != nil {
		return err
	}
	nodes := &corev1.NodeList{}
	if err := workload.List(ctx, nodes); err != nil {
		return fmt.Errorf("listing nodes of cluster %q: %w", key, err)
	}
	i := slices.IndexFunc(nodes.Items, func(n corev1.Node) bool { return runsOn(&n, s.machine, s.device) })
	if i < 0 {
		return nil
	}
	return initialize(ctx, workload, &nodes.Items[i], s)
}

// runsOn reports whether the node runs on the device: by its provider ID or, without one, by the
// name or an address of the device.
func runsOn(n *corev1.Node, m *infrav1.PacketMachine, d *client.Device) bool {
	if n.Spec.ProviderID != "" {
		return n.Spec.ProviderID == ptr.Deref(m.Spec.ProviderID, "")
	}
	if n.Name == d.Hostname {
		return true
	}
	return slices.ContainsFunc(n.Status.Addresses, func(a corev1.NodeAddress) bool {
		return slices.ContainsFunc(ownAddresses(d), func(ip client.IPAssignment) bool { return ip.Address == a.Address })
	})
}

func initialize(ctx context.Context, workload ctrlclient.Client, cached *corev1.Node, s *scope) error {
	cached, err := setAddresses(ctx, workload, cached, s.device)
	if err != nil {
		return err
	}
	node := cached.DeepCopy()
	prepare(node, s.device)
	patch := ctrlclient.MergeFromWithOptions(cached, ctrlclient.MergeFromWithOptimisticLock{})
	if data, err := patch.Data(node); err != nil || unchanged(cached, node) || len(data) == 0 {
		return err
	}
	if err := workload.Patch(ctx, node, patch); err != nil {
		return fmt.Errorf("initializing node %q: %w", node.Name, err)
	}
	ctrl.LoggerFrom(ctx).Info("Initialized the node", "node", node.Name)
	return nil
}

// setAddresses sets the addresses of a node without any. The API server can't reach its kubelet,
// nor anyone its Pods, without them.
func setAddresses(ctx context.Context, workload ctrlclient.Client, cached *corev1.Node, d *client.Device) (*corev1.Node, error) {
	if !lacksInternalIP(cached) {
		return cached, nil
	}
	node := cached.DeepCopy()
	node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: node.Name}}
	for _, a := range addresses(&client.Device{IPAddresses: ownAddresses(d)}) {
		node.Status.Addresses = append(node.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeAddressType(a.Type), Address: a.Address})
	}
	if err := workload.Status().Patch(ctx, node, ctrlclient.MergeFrom(cached)); err != nil {
		return nil, fmt.Errorf("setting the addresses of node %q: %w", node.Name, err)
	}
	return node, nil
}

// ownAddresses returns the addresses that never move to another device.
func ownAddresses(d *client.Device) []client.IPAssignment {
	return slices.DeleteFunc(slices.Clone(d.IPAddresses), func(ip client.IPAssignment) bool { return !ip.Management })
}

// lacksInternalIP reports whether a node has no address within its cluster.
func lacksInternalIP(n *corev1.Node) bool {
	return !slices.ContainsFunc(n.Status.Addresses, func(a corev1.NodeAddress) bool { return a.Type == corev1.NodeInternalIP })
}

// prepare completes a node of the device. It keeps existing labels.
func prepare(node *corev1.Node, d *client.Device) {
	if node.Spec.ProviderID == "" {
		node.Spec.ProviderID = providerPrefix + d.ID
	}
	node.Spec.Taints = slices.DeleteFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == uninitialized })
	labels := map[string]string{corev1.LabelTopologyRegion: d.MetroCode(), corev1.LabelTopologyZone: d.FacilityCode()}
	if d.Plan != nil {
		labels[corev1.LabelInstanceTypeStable] = d.Plan.Slug
	}
	for key, value := range labels {
		if value == "" || node.Labels[key] != "" {
			continue
		}
		if node.Labels == nil {
			node.Labels = map[string]string{}
		}
		node.Labels[key] = value
	}
}

func unchanged(a, b *corev1.Node) bool {
	return a.Spec.ProviderID == b.Spec.ProviderID && len(a.Spec.Taints) == len(b.Spec.Taints) && len(a.Labels) == len(b.Labels)
}

// pending reports whether a node is not initialized yet.
func pending(n *corev1.Node) bool {
	return n.Spec.ProviderID == "" || lacksInternalIP(n) || slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == uninitialized })
}

// matches reports whether the node has the name or an address of the machine, to map events of
// nodes to machines.
func matches(n *corev1.Node, m *infrav1.PacketMachine) bool {
	if n.Name == m.Name {
		return true
	}
	return slices.ContainsFunc(n.Status.Addresses, func(a corev1.NodeAddress) bool {
		return slices.ContainsFunc(m.Status.Addresses, func(b clusterv1.MachineAddress) bool { return a.Address == b.Address })
	})
}
