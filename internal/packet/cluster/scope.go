package cluster

import (
	"context"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	kerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util"
	"sigs.k8s.io/cluster-api/util/finalizers"
	"sigs.k8s.io/cluster-api/util/patch"
	"sigs.k8s.io/cluster-api/util/paused"

	infrav1 "github.com/drover-dev/drover/api/infrastructure/v1beta1"
	"github.com/drover-dev/drover/internal/packet/client"
	"github.com/drover-dev/drover/internal/packet/outcome"
)

// scope is one reconcile: the objects it is about, and the facts that its steps find.
type scope struct {
	controller *Controller
	patch      *patch.Helper

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
	// settled says that there is nothing left to do.
	settled bool
	// wait is why the steps ended early.
	wait *outcome.Wait
}

// open collects the objects. It returns nil if there is nothing to do, or not yet.
func (c *Controller) open(ctx context.Context, key ctrlclient.ObjectKey) (*scope, error) {
	s := &scope{controller: c, packetCluster: &infrav1.PacketCluster{}}
	if err := c.Client.Get(ctx, key, s.packetCluster); err != nil {
		return nil, ctrlclient.IgnoreNotFound(err)
	}
	var err error
	s.cluster, err = util.GetOwnerCluster(ctx, c.Client, s.packetCluster.ObjectMeta)
	if ctrlclient.IgnoreNotFound(err) != nil {
		return nil, err
	}
	if s.cluster == nil && !s.deleting() {
		return nil, nil // Cluster API sets the owner, which is an event
	}
	if isPaused, requeue, err := paused.EnsurePausedCondition(ctx, c.Client, s.cluster, s.packetCluster); err != nil || isPaused || requeue {
		return nil, err
	}
	if added, err := finalizers.EnsureFinalizer(ctx, c.Client, s.packetCluster, infrav1.ClusterFinalizer); err != nil || added {
		return nil, err
	}
	s.patch, err = patch.NewHelper(s.packetCluster, c.Client)
	return s, err
}

func (s *scope) deleting() bool { return !s.packetCluster.DeletionTimestamp.IsZero() }

// wasUp says that the endpoint is in use. Status does not survive a move to another management plane; the endpoint that Cluster API has
// taken over by then does.
func (s *scope) wasUp() bool {
	if ptr.Deref(s.packetCluster.Status.Initialization.Provisioned, false) {
		return true
	}
	endpoint := s.packetCluster.Spec.ControlPlaneEndpoint
	return s.cluster != nil && endpoint.IsValid() && s.cluster.Spec.ControlPlaneEndpoint.Host == endpoint.Host
}

// identity is how the cluster is called in tags.
func (s *scope) identity() identity {
	i := identity{namespace: s.packetCluster.Namespace, cluster: s.packetCluster.Labels[clusterv1.ClusterNameLabel]}
	for _, ref := range s.packetCluster.OwnerReferences {
		if ref.Kind == "Cluster" {
			i.cluster = ref.Name
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
	writeErr := s.patch.Patch(ctx, s.packetCluster, patch.WithOwnedConditions{Conditions: []string{
		infrav1.NetworkInfrastructureReady, clusterv1.ReadyCondition,
	}})
	if s.deleting() {
		writeErr = kerrors.FilterOut(writeErr, apierrors.IsNotFound)
	}
	if err != nil || writeErr != nil {
		return ctrl.Result{}, kerrors.NewAggregate([]error{err, writeErr})
	}
	if s.wait != nil {
		return ctrl.Result{RequeueAfter: outcome.Jitter(s.wait.After)}, nil
	}
	return ctrl.Result{}, nil
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
