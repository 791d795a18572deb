package cluster

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	etcdv1 "github.com/drover-dev/drover/api/etcdcluster/v1beta1"
	infrav1 "github.com/drover-dev/drover/api/infrastructure/v1beta1"
	"github.com/drover-dev/drover/internal/controllers/clusters/build"
	"github.com/drover-dev/drover/internal/model/owner"
)

// live are the existing objects of a cluster. The status is computed from those that belong to it;
// templates and health checks of others occupy names.
type live struct {
	// foreign is an object that has the name of the cluster and belongs to another one, or nil.
	foreign client.Object

	cluster        *clusterv1.Cluster
	infrastructure *infrav1.PacketCluster
	controlPlane   *controlplanev1.KubeadmControlPlane
	etcd           *etcdv1.EtcdadmCluster
	workers        []*clusterv1.MachineDeployment
	sets           []*clusterv1.MachineSet
	machines       []*clusterv1.Machine
	devices        []*infrav1.PacketMachine
	checks         []*clusterv1.MachineHealthCheck
	templates      []*infrav1.PacketMachineTemplate
	bootstraps     []*bootstrapv1.KubeadmConfigTemplate
	network        *addonsv1.HelmChartProxy
	release        *addonsv1.HelmReleaseProxy
}

// observe reads the existing objects from the cache.
func (c *Controller) observe(ctx context.Context, s *scope) error {
	l, name := &s.live, s.cluster.Name
	if err := c.observeNamed(ctx, s); err != nil {
		return err
	}
	mine := client.MatchingLabels(build.Labels(s.cluster))
	for _, err := range []error{
		list(ctx, c.Client, &clusterv1.MachineDeploymentList{}, mine, func(o *clusterv1.MachineDeploymentList) { l.workers = pointers(o.Items) }),
		list(ctx, c.Client, &clusterv1.MachineSetList{}, mine, func(o *clusterv1.MachineSetList) { l.sets = pointers(o.Items) }),
		list(ctx, c.Client, &clusterv1.MachineList{}, mine, func(o *clusterv1.MachineList) { l.machines = pointers(o.Items) }),
		list(ctx, c.Client, &clusterv1.MachineHealthCheckList{}, mine, func(o *clusterv1.MachineHealthCheckList) { l.checks = pointers(o.Items) }),
		list(ctx, c.Client, &infrav1.PacketMachineTemplateList{}, mine, func(o *infrav1.PacketMachineTemplateList) { l.templates = pointers(o.Items) }),
		list(ctx, c.Client, &infrav1.PacketMachineList{}, client.MatchingLabels{clusterv1.ClusterNameLabel: name}, func(o *infrav1.PacketMachineList) { l.devices = pointers(o.Items) }),
		list(ctx, c.Client, &bootstrapv1.KubeadmConfigTemplateList{}, mine, func(o *bootstrapv1.KubeadmConfigTemplateList) { l.bootstraps = pointers(o.Items) }),
		list(ctx, c.Client, &addonsv1.HelmReleaseProxyList{}, client.MatchingLabels{addonsv1.HelmChartProxyLabel: build.NetworkName(name)}, l.findRelease(name)),
	} {
		if err != nil {
			return err
		}
	}
	l.workers, l.sets, l.machines = owned(s.cluster, l.workers), owned(s.cluster, l.sets), owned(s.cluster, l.machines)
	if l.network == nil {
		l.release = nil
	}
	return nil
}

// observeNamed reads the objects that have a fixed name, and leaves out those of others.
func (c *Controller) observeNamed(ctx context.Context, s *scope) (err error) {
	l, name := &s.live, s.cluster.Name
	if l.cluster, err = own(ctx, c.Client, s, name, &clusterv1.Cluster{}); err != nil {
		return err
	}
	if l.infrastructure, err = own(ctx, c.Client, s, name, &infrav1.PacketCluster{}); err != nil {
		return err
	}
	if l.controlPlane, err = own(ctx, c.Client, s, name, &controlplanev1.KubeadmControlPlane{}); err != nil {
		return err
	}
	if l.etcd, err = own(ctx, c.Client, s, build.EtcdName(name), &etcdv1.EtcdadmCluster{}); err != nil {
		return err
	}
	l.network, err = own(ctx, c.Client, s, build.NetworkName(name), &addonsv1.HelmChartProxy{})
	return err
}

func (l *live) findRelease(cluster string) func(*addonsv1.HelmReleaseProxyList) {
	return func(all *addonsv1.HelmReleaseProxyList) {
		for i := range all.Items {
			if all.Items[i].Spec.ClusterRef.Name == cluster {
				l.release = &all.Items[i]
			}
		}
	}
}

// own returns an object of the Cluster, or nil. It keeps the first one that belongs to another.
func own[T client.Object](ctx context.Context, reader client.Reader, s *scope, name string, into T) (T, error) {
	var none T
	err := reader.Get(ctx, client.ObjectKey{Namespace: anywherev1.SystemNamespace, Name: name}, into)
	switch {
	case apierrors.IsNotFound(err):
		return none, nil
	case err != nil:
		return none, fmt.Errorf("reading %T %q: %w", into, name, err)
	case owner.Owns(s.cluster, into):
		return into, nil
	}
	if s.live.foreign == nil {
		s.live.foreign = into
	}
	return none, nil
}

// owned returns the objects that belong to a Cluster.
func owned[T client.Object](c *anywherev1.Cluster, all []T) []T {
	return slices.DeleteFunc(all, func(o T) bool { return !owner.Owns(c, o) })
}

func list[T client.ObjectList](ctx context.Context, reader client.Reader, into T, labels client.MatchingLabels, take func(T)) error {
	if err := reader.List(ctx, into, client.InNamespace(anywherev1.SystemNamespace), labels); err != nil {
		return fmt.Errorf("listing %T: %w", into, err)
	}
	take(into)
	return nil
}

// pointers returns pointers sorted by name, because lists from a cache are not sorted.
func pointers[T any, P interface {
	*T
	client.Object
}](items []T) []P {
	out := make([]P, 0, len(items))
	for i := range items {
		out = append(out, P(&items[i]))
	}
	slices.SortFunc(out, func(a, b P) int { return cmp.Compare(a.GetName(), b.GetName()) })
	return out
}

// existing returns the objects that building depends on.
func (l *live) existing() *build.Existing {
	out := &build.Existing{
		ControlPlane: l.controlPlane, Etcd: l.etcd, Workers: map[string]*clusterv1.MachineDeployment{}, Machines: l.templates, Bootstraps: l.bootstraps,
	}
	for _, d := range l.workers {
		out.Workers[d.Name] = d
	}
	return out
}

// find returns the existing object of the same kind and name, or nil.
func (l *live) find(wanted client.Object) client.Object {
	for _, o := range l.all() {
		if fmt.Sprintf("%T", o) == fmt.Sprintf("%T", wanted) && o.GetName() == wanted.GetName() {
			return o
		}
	}
	return nil
}

// all returns the objects that this controller creates, except Secrets, whose data is not cached.
func (l *live) all() []client.Object {
	var out []client.Object
	add := func(o client.Object, there bool) {
		if there {
			out = append(out, o)
		}
	}
	add(l.cluster, l.cluster != nil)
	add(l.infrastructure, l.infrastructure != nil)
	add(l.controlPlane, l.controlPlane != nil)
	add(l.etcd, l.etcd != nil)
	add(l.network, l.network != nil)
	return append(out, l.removable()...)
}

// replace replaces a cached object by a response of the API server.
func (l *live) replace(o client.Object) {
	switch o := o.(type) {
	case *clusterv1.Cluster:
		l.cluster = o
	case *infrav1.PacketCluster:
		l.infrastructure = o
	case *controlplanev1.KubeadmControlPlane:
		l.controlPlane = o
	case *etcdv1.EtcdadmCluster:
		l.etcd = o
	case *addonsv1.HelmChartProxy:
		l.network = o
	case *clusterv1.MachineDeployment:
		l.workers = upsert(l.workers, o)
	case *clusterv1.MachineHealthCheck, *infrav1.PacketMachineTemplate, *bootstrapv1.KubeadmConfigTemplate, *corev1.Secret:
	}
}

func upsert[T client.Object](list []T, o T) []T {
	i := slices.IndexFunc(list, func(have T) bool { return have.GetName() == o.GetName() })
	if i < 0 {
		return append(list, o)
	}
	list[i] = o
	return list
}
