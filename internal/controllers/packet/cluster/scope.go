package cluster

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util"
	"sigs.k8s.io/cluster-api/util/paused"

	infrav1 "github.com/drover-dev/drover/api/infrastructure/v1beta1"
	"github.com/drover-dev/drover/internal/controllers/reconcile"
	"github.com/drover-dev/drover/internal/metal/client"
	"github.com/drover-dev/drover/internal/metal/tags"
)

// scope is one reconcile: its objects, and the facts that its steps gather.
type scope struct {
	*reconcile.Visit[*infrav1.PacketCluster]

	packetCluster *infrav1.PacketCluster
	cluster       *clusterv1.Cluster // nil only while the PacketCluster is being deleted

	api *client.Client
	facts
}

// facts are what the steps gathered. Status is computed from nothing else.
type facts struct {
	// address is the cluster's, nil if this reconcile did not read it.
	address *client.IPReservation
	// owned means that the address was reserved for this cluster.
	owned bool
	// external means that the user provides the endpoint.
	external bool
	// provisioned means that the cluster was ready before.
	provisioned bool
	// wait is why the steps ended early, or nil.
	wait *reconcile.Wait
}

// open reads the objects. It returns nil if there is nothing to do, or not yet.
func (c *Controller) open(ctx context.Context, key ctrlclient.ObjectKey) (*scope, error) {
	s := &scope{packetCluster: &infrav1.PacketCluster{}}
	v, err := reconcile.Opening[*infrav1.PacketCluster]{
		Client: c.Client, Finalizer: infrav1.ClusterFinalizer,
		Skip: func(ctx context.Context, p *infrav1.PacketCluster) (skip bool, err error) {
			s.cluster, err = util.GetOwnerCluster(ctx, c.Client, p.ObjectMeta)
			if ctrlclient.IgnoreNotFound(err) != nil || s.cluster == nil && p.DeletionTimestamp.IsZero() {
				return true, ctrlclient.IgnoreNotFound(err)
			}
			isPaused, requeue, err := paused.EnsurePausedCondition(ctx, c.Client, s.cluster, p)
			return isPaused || requeue, err
		},
	}.Open(ctx, key, s.packetCluster)
	if err != nil || v == nil {
		return nil, err
	}
	s.Visit = v
	return s, nil
}

// wasUp reports whether the endpoint is in use. Status does not survive a move to another
// management plane, but the endpoint that Cluster API has copied by then does.
func (s *scope) wasUp() bool {
	if ptr.Deref(s.packetCluster.Status.Initialization.Provisioned, false) {
		return true
	}
	endpoint := s.packetCluster.Spec.ControlPlaneEndpoint
	return s.cluster != nil && endpoint.IsValid() && s.cluster.Spec.ControlPlaneEndpoint.Host == endpoint.Host
}

// identity is how the cluster is named in tags.
func (s *scope) identity() identity {
	i := identity{Endpoint: tags.Endpoint{Namespace: s.packetCluster.Namespace, Cluster: s.packetCluster.Labels[clusterv1.ClusterNameLabel]}}
	for _, ref := range s.packetCluster.OwnerReferences {
		if ref.Kind == "Cluster" {
			i.Cluster = ref.Name
		}
	}
	i.host = s.packetCluster.Spec.ControlPlaneEndpoint.Host
	if e := s.packetCluster.Status.Endpoint; e != nil {
		i.reservation = e.ReservationID
	}
	return i
}

// close computes the status, unless the steps failed, and writes it.
func (s *scope) close(ctx context.Context, err error) (ctrl.Result, error) {
	s.wait = reconcile.AsWait(err)
	if (err == nil || s.wait != nil) && !s.Released(infrav1.ClusterFinalizer) {
		s.provisioned = s.wasUp()
		s.report()
	}
	return s.Close(ctx, err, 0)
}

// recently remembers when something was last done for an object. Losing it in a restart costs one
// more request.
type recently struct {
	mu sync.Mutex
	at map[types.UID]time.Time
}

func (r *recently) within(uid types.UID, now time.Time, d time.Duration) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	at, ok := r.at[uid]
	return ok && now.Sub(at) < d
}

func (r *recently) note(uid types.UID, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.at == nil {
		r.at = map[types.UID]time.Time{}
	}
	r.at[uid] = now
}

func (r *recently) forget(uid types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.at, uid)
}
