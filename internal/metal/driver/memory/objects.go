package memory

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	inmemory "sigs.k8s.io/cluster-api/test/infrastructure/inmemory/pkg/runtime/client"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	controlPlaneLabel = "node-role.kubernetes.io/control-plane"
	coreDNSImage      = "registry.k8s.io/coredns/coredns:v1.12.4"
	corefile          = ".:53 {\n    errors\n    health\n    ready\n    kubernetes cluster.local in-addr.arpa ip6.arpa\n    forward . /etc/resolv.conf\n    cache 30\n    loop\n    reload\n}\n"
	nodesRole         = "kubeadm:get-nodes"
	joinersGroup      = "system:bootstrappers:kubeadm:default-node-token"
)

func (c *clusters) client(k *cluster) inmemory.Client {
	return c.backend.GetResourceGroup(k.group).GetClient()
}

// create creates missing objects.
func create(ctx context.Context, cl inmemory.Client, objects ...client.Object) error {
	for _, o := range objects {
		if err := cl.Create(ctx, o); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("creating %T %q: %w", o, o.GetName(), err)
		}
	}
	return nil
}

// clusterObjects returns the objects that kubeadm creates in a new cluster and the control plane
// controller requires.
func (c *clusters) clusterObjects(ctx context.Context, k *cluster, n *node) error {
	var objects []client.Object
	for _, name := range []string{metav1.NamespaceDefault, metav1.NamespacePublic, metav1.NamespaceSystem, corev1.NamespaceNodeLease} {
		objects = append(objects, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelMetadataName: name}}})
	}
	configuration := n.boot.configuration
	if configuration == "" {
		configuration = "apiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration\nkubernetesVersion: " + n.boot.version + "\n"
	}
	objects = append(objects,
		&corev1.ConfigMap{ObjectMeta: system("kubeadm-config"), Data: map[string]string{"ClusterConfiguration": configuration}},
		&corev1.ConfigMap{ObjectMeta: system("coredns"), Data: map[string]string{"Corefile": corefile}},
		&rbacv1.ClusterRole{
			ObjectMeta: metav1.ObjectMeta{Name: nodesRole},
			Rules:      []rbacv1.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"nodes"}}},
		},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: nodesRole},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: nodesRole},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.GroupKind, Name: joinersGroup}},
		},
		&appsv1.DaemonSet{ObjectMeta: system("kube-proxy"), Spec: appsv1.DaemonSetSpec{Template: container("kube-proxy", "registry.k8s.io/kube-proxy:"+imageTag(k.version))}},
		&appsv1.Deployment{ObjectMeta: system("coredns"), Spec: appsv1.DeploymentSpec{Template: container("coredns", coreDNSImage)}},
	)
	return create(ctx, c.client(k), objects...)
}

func system(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: name}
}

func container(name, image string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: name, Image: image}}}}
}

// imageTag converts a version to a tag, which can't contain a plus sign.
func imageTag(version string) string { return strings.ReplaceAll(version, "+", "_") }

// components are the static pods of a control plane.
var components = []string{"kube-apiserver", "kube-scheduler", "kube-controller-manager"}

// nodeObjects returns a node and its static pods. A rebooted machine finds them and marks them
// ready.
func (c *clusters) nodeObjects(ctx context.Context, k *cluster, n *node) error {
	cl := c.client(k)
	if err := upsert(ctx, cl, nodeObject(n), func(o, fresh *corev1.Node) { o.Status = fresh.Status }); err != nil {
		return err
	}
	if !n.boot.controlPlane {
		return nil
	}
	var pods []*corev1.Pod
	for _, component := range components {
		pods = append(pods, staticPod(component, n.boot.nodeName))
	}
	if k.etcd != nil {
		member, err := c.etcdPod(ctx, cl, n.boot.nodeName)
		if err != nil {
			return err
		}
		pods = append(pods, member)
	}
	for _, pod := range pods {
		if err := upsert(ctx, cl, pod, func(o, fresh *corev1.Pod) { o.Status = fresh.Status }); err != nil {
			return err
		}
	}
	return nil
}

// upsert creates an object, or updates the status of an existing one.
func upsert[T client.Object](ctx context.Context, cl inmemory.Client, fresh T, take func(old, fresh T)) error {
	err := cl.Create(ctx, fresh.DeepCopyObject().(T))
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	return modify(ctx, cl, fresh, func(old T) { take(old, fresh) })
}

// modify changes an object if it exists.
func modify[T client.Object](ctx context.Context, cl inmemory.Client, key T, change func(T)) error {
	old := key.DeepCopyObject().(T)
	if err := cl.Get(ctx, client.ObjectKeyFromObject(key), old); err != nil {
		return client.IgnoreNotFound(err)
	}
	before := old.DeepCopyObject().(T)
	change(old)
	return cl.Patch(ctx, old, client.MergeFrom(before))
}

func nodeObject(n *node) *corev1.Node {
	o := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: n.boot.nodeName, Labels: map[string]string{
			corev1.LabelHostname: n.boot.nodeName, corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64",
			corev1.LabelInstanceTypeStable: n.machine.Plan, corev1.LabelTopologyRegion: n.machine.Instance.Region, corev1.LabelTopologyZone: n.machine.Instance.AvailabilityZone,
		}},
		Spec: corev1.NodeSpec{ProviderID: n.boot.providerID, Taints: n.boot.taints},
		Status: corev1.NodeStatus{
			NodeInfo:   corev1.NodeSystemInfo{KubeletVersion: n.boot.version, OperatingSystem: "linux", Architecture: "amd64", OSImage: n.machine.OS},
			Conditions: nodeConditions(corev1.ConditionTrue),
			Capacity: corev1.ResourceList{
				corev1.ResourceCPU:    *resource.NewQuantity(int64(n.machine.CPUs), resource.DecimalSI),
				corev1.ResourceMemory: *resource.NewQuantity(n.machine.MemoryBytes, resource.BinarySI),
			},
		},
	}
	o.Status.Allocatable = o.Status.Capacity
	for key, value := range n.boot.labels {
		o.Labels[key] = value
	}
	if n.boot.controlPlane {
		o.Labels[controlPlaneLabel] = ""
	}
	for _, a := range n.machine.Addresses {
		o.Status.Addresses = append(o.Status.Addresses, nodeAddress(a.IP, a.Public))
	}
	o.Status.Addresses = append(o.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeHostName, Address: n.boot.nodeName})
	return o
}

func nodeAddress(ip netip.Addr, public bool) corev1.NodeAddress { //nolint:revive // A property of the address.
	kind := corev1.NodeInternalIP
	if public {
		kind = corev1.NodeExternalIP
	}
	return corev1.NodeAddress{Type: kind, Address: ip.String()}
}

func nodeConditions(ready corev1.ConditionStatus) []corev1.NodeCondition {
	now := metav1.Now()
	out := []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready, Reason: "KubeletReady", LastTransitionTime: now, LastHeartbeatTime: now}}
	if ready != corev1.ConditionTrue {
		out[0].Reason = "NodeStatusUnknown"
	}
	for _, pressure := range []corev1.NodeConditionType{corev1.NodeMemoryPressure, corev1.NodeDiskPressure, corev1.NodePIDPressure} {
		out = append(out, corev1.NodeCondition{Type: pressure, Status: corev1.ConditionFalse, Reason: "KubeletHasNoPressure", LastTransitionTime: now, LastHeartbeatTime: now})
	}
	return out
}

func staticPod(component, nodeName string) *corev1.Pod {
	meta := system(component + "-" + nodeName)
	meta.Labels = map[string]string{"component": component, "tier": "control-plane"}
	meta.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: component} // Draining spares it.
	return &corev1.Pod{
		ObjectMeta: meta,
		Spec:       corev1.PodSpec{NodeName: nodeName, Containers: []corev1.Container{{Name: component}}},
		Status: corev1.PodStatus{
			Phase:      corev1.PodRunning,
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
		},
	}
}

// markDown marks the objects of a powered-off node as not ready.
func (c *clusters) markDown(n *node) error {
	ctx := context.Background()
	cl := c.client(n.cluster)
	err := modify(ctx, cl, nodeObject(n), func(o *corev1.Node) { o.Status.Conditions = nodeConditions(corev1.ConditionUnknown) })
	if !n.boot.controlPlane {
		return err
	}
	errs := []error{err, c.passLeadership(ctx, n.cluster, n.boot.nodeName)}
	for _, component := range append([]string{"etcd"}, components...) {
		errs = append(errs, modify(ctx, cl, staticPod(component, n.boot.nodeName), func(o *corev1.Pod) {
			o.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse}}
		}))
	}
	return errors.Join(errs...)
}

// dropObjects removes the objects of a machine from the cluster.
func (c *clusters) dropObjects(n *node) error {
	ctx := context.Background()
	cl := c.client(n.cluster)
	var errs []error
	objects := []client.Object{&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.boot.nodeName}}}
	if n.boot.controlPlane {
		errs = append(errs, c.passLeadership(ctx, n.cluster, n.boot.nodeName))
		for _, component := range append([]string{"etcd"}, components...) {
			objects = append(objects, staticPod(component, n.boot.nodeName))
		}
	}
	for _, o := range objects {
		errs = append(errs, client.IgnoreNotFound(cl.Delete(ctx, o)))
	}
	return errors.Join(errs...)
}
