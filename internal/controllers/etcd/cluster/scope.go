package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/paused"

	etcdbootstrapv1 "github.com/drover-dev/drover/api/bootstrap/v1beta1"
	etcdv1 "github.com/drover-dev/drover/api/etcdcluster/v1beta1"
	infrav1 "github.com/drover-dev/drover/api/infrastructure/v1beta1"
	"github.com/drover-dev/drover/internal/base/pki"
	"github.com/drover-dev/drover/internal/controllers/etcd/plan"
	"github.com/drover-dev/drover/internal/controllers/reconcile"
	"github.com/drover-dev/drover/internal/metal/client"
)

// scope is one reconcile: its objects, and the facts that its steps gather.
type scope struct {
	*reconcile.Visit[*etcdv1.EtcdadmCluster]

	controller *Controller

	etcd          *etcdv1.EtcdadmCluster
	cluster       *clusterv1.Cluster     // nil if it is gone
	packetCluster *infrav1.PacketCluster // nil if it does not exist (yet)

	api       *client.Client
	authority *pki.Authority
	peer      Peer
	addresses addresses
	machines  []infrav1.PacketMachine
	configs   []etcdbootstrapv1.EtcdadmConfig
	template  *infrav1.PacketMachineTemplate
	config    string // identifies the wanted configuration of machines

	facts
}

// facts are what status is computed from.
type facts struct {
	// clusterName is the name of the Cluster.
	clusterName string
	// endpoints are the addresses of the slots, nil if they were not read.
	endpoints []string
	// certificates means that they exist.
	certificates bool
	// clientRenewed is since when the certificate of API servers was issued, if somebody requested
	// a time.
	clientRenewed *time.Time
	// world is what is known of etcd, nil if it was not observed.
	world *plan.World
	// action is what was decided.
	action plan.Action
	// wait is why the steps ended early, or nil.
	wait *reconcile.Wait
	// hasFormed means that etcd has formed, at the end of the reconcile.
	hasFormed bool
}

// open reads the objects. It returns nil if there is nothing to do, or not yet.
func (c *Controller) open(ctx context.Context, key ctrlclient.ObjectKey) (*scope, error) {
	s := &scope{controller: c, etcd: &etcdv1.EtcdadmCluster{}}
	v, err := reconcile.Opening[*etcdv1.EtcdadmCluster]{
		Client: c.Client, Finalizer: etcdv1.Finalizer, Forget: c.unhealthy.Forget,
		Skip: func(ctx context.Context, e *etcdv1.EtcdadmCluster) (bool, error) {
			if err := s.loadCluster(ctx); err != nil || s.cluster == nil && e.DeletionTimestamp.IsZero() {
				return true, err
			}
			isPaused, requeue, err := paused.EnsurePausedCondition(ctx, c.Client, s.cluster, e)
			return isPaused || requeue, err
		},
	}.Open(ctx, key, s.etcd)
	if err != nil || v == nil {
		return nil, err
	}
	s.Visit = v
	err = s.own(ctx)
	return s, err
}

// loadCluster reads the Cluster that the label names, and its PacketCluster.
func (s *scope) loadCluster(ctx context.Context) error {
	name := s.etcd.Labels[clusterv1.ClusterNameLabel]
	if name == "" {
		return nil
	}
	c := s.controller.Client
	cluster := &clusterv1.Cluster{}
	if err := c.Get(ctx, ctrlclient.ObjectKey{Namespace: s.etcd.Namespace, Name: name}, cluster); err != nil {
		return ctrlclient.IgnoreNotFound(err)
	}
	s.cluster, s.clusterName = cluster, cluster.Name
	packetCluster := &infrav1.PacketCluster{}
	key := ctrlclient.ObjectKey{Namespace: s.etcd.Namespace, Name: cluster.Spec.InfrastructureRef.Name}
	if err := c.Get(ctx, key, packetCluster); err != nil {
		return ctrlclient.IgnoreNotFound(err)
	}
	s.packetCluster = packetCluster
	return nil
}

// own makes the Cluster an owner, so that clusterctl moves both together.
func (s *scope) own(ctx context.Context) error {
	if s.cluster == nil || s.Deleting() {
		return nil
	}
	if err := controllerutil.SetOwnerReference(s.cluster, s.etcd, s.controller.Client.Scheme()); err != nil {
		return fmt.Errorf("owning EtcdadmCluster %q: %w", s.etcd.Name, err)
	}
	return s.Save(ctx)
}

func (s *scope) replicas() int { return int(ptr.Deref(s.etcd.Spec.Replicas, 1)) }

func (s *scope) initialized() bool {
	_, ok := s.etcd.Annotations[etcdv1.InitializedAnnotation]
	return ok
}

// meta returns the metadata of an object of this etcd.
func (s *scope) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: s.etcd.Namespace, Name: name,
		Labels: map[string]string{clusterv1.ClusterNameLabel: s.cluster.Name, etcdv1.MemberLabel: s.etcd.Name},
		OwnerReferences: []metav1.OwnerReference{
			*metav1.NewControllerRef(s.etcd, etcdv1.GroupVersion.WithKind("EtcdadmCluster")),
		},
	}
}

// close computes the status, unless the steps failed, and writes it.
func (s *scope) close(ctx context.Context, err error) (ctrl.Result, error) {
	s.wait = reconcile.AsWait(err)
	if (err == nil || s.wait != nil) && !s.Released(etcdv1.Finalizer) {
		s.report()
		if told := s.controller.reportToControlPlane(ctx, s); told != nil {
			err = errors.Join(err, told)
		}
	}
	next := changeInterval
	if s.action.Kind == plan.Done {
		next = checkInterval
	}
	return s.Close(ctx, err, reconcile.Jitter(next))
}
