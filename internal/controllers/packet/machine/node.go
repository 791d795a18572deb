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
	"github.com/drover-dev/drover/internal/controllers/packet/outcome"
	"github.com/drover-dev/drover/internal/metal/client"
)

// uninitialized is put on a node by a kubelet that was told to expect a cloud controller.
const uninitialized = "node.cloudprovider.kubernetes.io/uninitialized"

// retryNode is when to try again after a workload cluster did not do as asked.
const retryNode = 10 * time.Second

// Workloads connects to workload clusters.
type Workloads interface {
	GetClient(ctx context.Context, cluster ctrlclient.ObjectKey) (ctrlclient.Client, error)
	Watch(ctx context.Context, cluster ctrlclient.ObjectKey, watcher clustercache.Watcher) error
}

// adoptNode does for the machine's node what a cloud controller manager would: it sets the provider id if the userdata did not, tells
// its addresses if the kubelet leaves that to others, and what and where the machine is in labels, and then lets Pods in. Without the provider id Cluster API can't match node and Machine.
// A cluster that can't be reached yet is no failure, its connection is an event; and what goes wrong there says nothing about the device.
func (c *Controller) adoptNode(ctx context.Context, s *scope) (*outcome.Wait, error) {
	if c.Workloads == nil || s.device.State != string(infrav1.InstanceActive) {
		return nil, nil
	}
	err := c.initializeNode(ctx, s)
	switch {
	case err == nil || errors.Is(err, clustercache.ErrClusterNotConnected):
	case apierrors.IsConflict(err):
		s.again(time.Second) // The kubelet wrote at the same time, as it does often in its first seconds.
	default:
		ctrl.LoggerFrom(ctx).Info("Node was not initialized, trying again", "error", err.Error())
		s.again(retryNode)
	}
	return nil, nil
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

// runsOn says whether the node is that of the device: it says so itself or, if it says nothing, has the device's name or an address of it.
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
	cached, err := locate(ctx, workload, cached, s.device)
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

// locate tells the addresses of a node that has none: without them nobody can reach its Pods, nor the API server the kubelet.
func locate(ctx context.Context, workload ctrlclient.Client, cached *corev1.Node, d *client.Device) (*corev1.Node, error) {
	if !homeless(cached) {
		return cached, nil
	}
	node := cached.DeepCopy()
	node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: node.Name}}
	for _, a := range addresses(&client.Device{IPAddresses: ownAddresses(d)}) {
		node.Status.Addresses = append(node.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeAddressType(a.Type), Address: a.Address})
	}
	if err := workload.Status().Patch(ctx, node, ctrlclient.MergeFrom(cached)); err != nil {
		return nil, fmt.Errorf("telling the addresses of node %q: %w", node.Name, err)
	}
	return node, nil
}

// ownAddresses are those that never move to another device.
func ownAddresses(d *client.Device) []client.IPAssignment {
	return slices.DeleteFunc(slices.Clone(d.IPAddresses), func(ip client.IPAssignment) bool { return !ip.Management })
}

// homeless says whether a node has no address within its cluster.
func homeless(n *corev1.Node) bool {
	return !slices.ContainsFunc(n.Status.Addresses, func(a corev1.NodeAddress) bool { return a.Type == corev1.NodeInternalIP })
}

// prepare is what a node of the device looks like. Labels that somebody has set stay.
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

// pending says whether a node still needs to be looked at.
func pending(n *corev1.Node) bool {
	return n.Spec.ProviderID == "" || homeless(n) || slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == uninitialized })
}

// machineOf says whether a machine's addresses or name are those of the node, for turning an event of the node into one of the machine.
func machineOf(n *corev1.Node, m *infrav1.PacketMachine) bool {
	if n.Name == m.Name {
		return true
	}
	return slices.ContainsFunc(n.Status.Addresses, func(a corev1.NodeAddress) bool {
		return slices.ContainsFunc(m.Status.Addresses, func(b clusterv1.MachineAddress) bool { return a.Address == b.Address })
	})
}
