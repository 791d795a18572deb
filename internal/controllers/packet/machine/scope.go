package machine

import (
	"context"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/paused"

	infrav1 "github.com/drover-dev/drover/api/infrastructure/v1beta1"
	"github.com/drover-dev/drover/internal/controllers/reconcile"
	"github.com/drover-dev/drover/internal/metal/client"
	"github.com/drover-dev/drover/internal/metal/tags"
)

// providerPrefix turns the ID of a device into a provider ID.
const providerPrefix = "equinixmetal://"

// scope is one reconcile: its objects, and the facts that its steps gather.
type scope struct {
	*reconcile.Visit[*infrav1.PacketMachine]

	controller *Controller

	machine       *infrav1.PacketMachine
	owner         *owner                 // nil only while the machine is being deleted
	cluster       *clusterv1.Cluster     // nil only while the machine is being deleted
	packetCluster *infrav1.PacketCluster // nil if it does not exist (yet)

	api *client.Client
	facts
}

// open reads the objects. It returns nil if there is nothing to do, or not yet.
func (c *Controller) open(ctx context.Context, key ctrlclient.ObjectKey) (*scope, error) {
	s := &scope{controller: c, machine: &infrav1.PacketMachine{}}
	v, err := reconcile.Opening[*infrav1.PacketMachine]{
		Client: c.Client, Finalizer: infrav1.MachineFinalizer,
		Skip: func(ctx context.Context, m *infrav1.PacketMachine) (bool, error) {
			err := s.loadOwners(ctx)
			if err != nil || s.owner == nil && m.DeletionTimestamp.IsZero() {
				return true, err
			}
			isPaused, requeue, err := paused.EnsurePausedCondition(ctx, c.Client, s.cluster, m)
			return isPaused || requeue, err
		},
	}.Open(ctx, key, s.machine)
	if err != nil || v == nil {
		return nil, err
	}
	s.Visit = v
	return s, nil
}

func (s *scope) loadOwners(ctx context.Context) error {
	c := s.controller.Client
	found, err := loadOwner(ctx, c, s.machine)
	if err != nil {
		return err
	}
	s.owner = found
	name := s.machine.Labels[clusterv1.ClusterNameLabel]
	if s.owner != nil {
		name = s.owner.cluster
	}
	if name == "" {
		return nil
	}
	cluster := &clusterv1.Cluster{}
	if err := c.Get(ctx, ctrlclient.ObjectKey{Namespace: s.machine.Namespace, Name: name}, cluster); err != nil {
		return s.tolerateMissing("Cluster", name, err)
	}
	s.cluster = cluster
	packetCluster := &infrav1.PacketCluster{}
	key := ctrlclient.ObjectKey{Namespace: s.machine.Namespace, Name: cluster.Spec.InfrastructureRef.Name}
	if err := c.Get(ctx, key, packetCluster); err != nil {
		return ctrlclient.IgnoreNotFound(err)
	}
	s.packetCluster = packetCluster
	return nil
}

// tolerateMissing ignores that the cluster of a machine that is being deleted no longer exists.
func (s *scope) tolerateMissing(kind, name string, err error) error {
	if apierrors.IsNotFound(err) && !s.machine.DeletionTimestamp.IsZero() {
		return nil
	}
	return fmt.Errorf("reading %s %q: %w", kind, name, err)
}

// wasUp reports whether the machine was ever active: from then on a node may run on it. Status does
// not survive a move to another management plane, but the provider ID that Cluster API has copied
// by then does.
func (s *scope) wasUp() bool {
	return ptr.Deref(s.machine.Status.Initialization.Provisioned, false) || (s.owner != nil && s.owner.started)
}

// deviceID returns "" if no device is recorded.
func (s *scope) deviceID() string {
	_, id, _ := strings.Cut(ptr.Deref(s.machine.Spec.ProviderID, ""), "://")
	return id
}

func (s *scope) record(d *client.Device) {
	s.device = d
	s.machine.Spec.ProviderID = ptr.To(providerPrefix + d.ID)
}

// identity is how the machine is named in tags. It includes the claim even before that is written.
func (s *scope) identity() tags.Machine {
	i := tags.Machine{Namespace: s.machine.Namespace, Claim: s.machine.Annotations[infrav1.ClaimAnnotation]}
	if i.Claim == "" {
		i.Claim = string(s.machine.UID)
	}
	i.Cluster = s.machine.Labels[clusterv1.ClusterNameLabel]
	if s.cluster != nil {
		i.Cluster = s.cluster.Name
	}
	for _, ref := range s.machine.OwnerReferences {
		if ref.Kind == "Machine" && strings.HasPrefix(ref.APIVersion, clusterv1.GroupVersion.Group+"/") {
			i.Name = ref.Name
		}
	}
	if etcdOwner(s.machine) != nil {
		i.Name = s.machine.Name
	}
	return i
}

func (s *scope) controlPlane() bool { return s.owner != nil && s.owner.role == roleControlPlane }

func (s *scope) now() metav1.Time { return metav1.NewTime(s.controller.Clock.Now()) }

// close computes the status, unless the steps failed, and writes it.
func (s *scope) close(ctx context.Context, err error) (ctrl.Result, error) {
	s.wait = reconcile.AsWait(err)
	if (err == nil || s.wait != nil) && !s.Released(infrav1.MachineFinalizer) {
		s.provisioned = s.wasUp()
		s.report()
	}
	return s.Close(ctx, err, s.next())
}

// next is when to reconcile again if no step has to wait.
func (s *scope) next() time.Duration {
	if s.device == nil {
		return 0
	}
	return s.pollAfter()
}
