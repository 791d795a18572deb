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

	infrav1 "github.com/drover-dev/drover/api/infrastructure/v1beta1"
	"github.com/drover-dev/drover/internal/controllers/packet/outcome"
	"github.com/drover-dev/drover/internal/controllers/packet/visit"
	"github.com/drover-dev/drover/internal/metal/client"
	"github.com/drover-dev/drover/internal/metal/tags"
)

// scope is one reconcile: the objects it is about, and the facts that its steps find.
type scope struct {
	*visit.Visit

	packetCluster *infrav1.PacketCluster
	cluster       *clusterv1.Cluster // nil only while the PacketCluster is deleted

	api *client.Client
	facts
}

// facts are what the steps found out. Status is made from them and nothing else.
type facts struct {
	// address is the cluster's, nil if it is not known from this reconcile.
	address *client.IPReservation
	// owned says that the address was reserved for this cluster.
	owned bool
	// external says that the endpoint is the user's own.
	external bool
	// provisioned says that the cluster was ready before.
	provisioned bool
	// wait is why the steps ended early.
	wait *outcome.Wait
}

// open collects the objects. It returns nil if there is nothing to do, or not yet.
func (c *Controller) open(ctx context.Context, key ctrlclient.ObjectKey) (*scope, error) {
	s := &scope{packetCluster: &infrav1.PacketCluster{}}
	v, err := visit.Opening{
		Client: c.Client, Finalizer: infrav1.ClusterFinalizer, Conditions: []string{infrav1.NetworkInfrastructureReady, clusterv1.ReadyCondition},
		Owners: func(ctx context.Context) (_ visit.Owners, err error) {
			s.cluster, err = util.GetOwnerCluster(ctx, c.Client, s.packetCluster.ObjectMeta)
			return visit.Owners{Cluster: s.cluster, Missing: s.cluster == nil}, ctrlclient.IgnoreNotFound(err)
		},
	}.Open(ctx, key, s.packetCluster)
	if err != nil || v == nil {
		return nil, err
	}
	s.Visit = v
	return s, nil
}

// wasUp says that the endpoint is in use. Status does not survive a move to another management plane; the endpoint that Cluster API has
// taken over by then does.
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

// close turns the facts into status and writes it.
func (s *scope) close(ctx context.Context, err error) (ctrl.Result, error) {
	if err == nil {
		s.provisioned = s.wasUp()
		s.report()
	}
	var next time.Duration
	if s.wait != nil {
		next = outcome.Jitter(s.wait.After)
	}
	return s.Close(ctx, next, err)
}

// recently remembers when something was last done for an object. Forgetting, as a restart does, costs one more call.
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
