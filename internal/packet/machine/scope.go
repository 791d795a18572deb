package machine

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// providerPrefix makes a provider id of a device's id.
const providerPrefix = "equinixmetal://"

// scope is one reconcile: the objects it is about, and the facts that its steps find.
type scope struct {
	controller *Controller
	patch      *patch.Helper

	machine       *infrav1.PacketMachine
	owner         *clusterv1.Machine     // nil only while the machine is deleted
	cluster       *clusterv1.Cluster     // nil only while the machine is deleted
	packetCluster *infrav1.PacketCluster // nil if it does not exist (yet)

	api *client.Client
	facts
}

// open collects the objects. It returns nil if there is nothing to do, or not yet.
func (c *Controller) open(ctx context.Context, key ctrlclient.ObjectKey) (*scope, error) {
	s := &scope{controller: c, machine: &infrav1.PacketMachine{}}
	if err := c.Client.Get(ctx, key, s.machine); err != nil {
		return nil, ctrlclient.IgnoreNotFound(err)
	}
	if err := s.loadOwners(ctx); err != nil {
		return nil, err
	}
	if s.owner == nil && !s.deleting() {
		return nil, nil // Cluster API sets the owner, which is an event
	}
	if isPaused, requeue, err := paused.EnsurePausedCondition(ctx, c.Client, s.cluster, s.machine); err != nil || isPaused || requeue {
		return nil, err
	}
	if added, err := finalizers.EnsureFinalizer(ctx, c.Client, s.machine, infrav1.MachineFinalizer); err != nil || added {
		return nil, err
	}
	var err error
	s.patch, err = patch.NewHelper(s.machine, c.Client)
	return s, err
}

func (s *scope) loadOwners(ctx context.Context) error {
	c := s.controller.Client
	owner, err := util.GetOwnerMachine(ctx, c, s.machine.ObjectMeta)
	if ctrlclient.IgnoreNotFound(err) != nil {
		return err
	}
	s.owner = owner
	name := s.machine.Labels[clusterv1.ClusterNameLabel]
	if s.owner != nil {
		name = s.owner.Spec.ClusterName
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

// tolerateMissing lets a machine be deleted whose cluster is gone already.
func (s *scope) tolerateMissing(kind, name string, err error) error {
	if apierrors.IsNotFound(err) && s.deleting() {
		return nil
	}
	return fmt.Errorf("reading %s %q: %w", kind, name, err)
}

func (s *scope) deleting() bool { return !s.machine.DeletionTimestamp.IsZero() }

// wasUp says that the machine was up once: from then on a node may live on it. Status does not survive a move to another management
// plane; the provider id that Cluster API has taken over by then does.
func (s *scope) wasUp() bool {
	return ptr.Deref(s.machine.Status.Initialization.Provisioned, false) || (s.owner != nil && s.owner.Spec.ProviderID != "")
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

// identity is how the machine is called in tags. The claim is part of it before it is written, as it is known in advance.
func (s *scope) identity() identity {
	i := identity{namespace: s.machine.Namespace, claim: s.machine.Annotations[infrav1.ClaimAnnotation]}
	if i.claim == "" {
		i.claim = string(s.machine.UID)
	}
	i.cluster = s.machine.Labels[clusterv1.ClusterNameLabel]
	if s.cluster != nil {
		i.cluster = s.cluster.Name
	}
	for _, ref := range s.machine.OwnerReferences {
		if ref.Kind == "Machine" && strings.HasPrefix(ref.APIVersion, clusterv1.GroupVersion.Group+"/") {
			i.machine = ref.Name
		}
	}
	return i
}

func (s *scope) controlPlane() bool { return s.owner != nil && util.IsControlPlaneMachine(s.owner) }

func (s *scope) now() metav1.Time { return metav1.NewTime(s.controller.Clock.Now()) }

// flush writes what is known so far, for a step that must not go on before that is safe.
func (s *scope) flush(ctx context.Context) error {
	if err := s.write(ctx); err != nil {
		return err
	}
	var err error
	s.patch, err = patch.NewHelper(s.machine, s.controller.Client)
	return err
}

func (s *scope) write(ctx context.Context) error {
	return s.patch.Patch(ctx, s.machine, patch.WithOwnedConditions{Conditions: []string{
		infrav1.InstanceReady, infrav1.BGPSessionReady, clusterv1.ReadyCondition,
	}})
}

// close turns the facts into status and writes it.
func (s *scope) close(ctx context.Context, err error) (ctrl.Result, error) {
	if err == nil {
		s.provisioned = s.wasUp()
		s.report()
	}
	writeErr := s.write(ctx)
	if s.deleting() {
		writeErr = kerrors.FilterOut(writeErr, apierrors.IsNotFound)
	}
	if err := kerrors.NewAggregate(slices.DeleteFunc([]error{err, writeErr}, func(e error) bool { return e == nil })); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: s.next()}, nil
}

// next is when to look again.
func (s *scope) next() time.Duration {
	switch {
	case s.wait != nil:
		return outcome.Jitter(s.wait.After)
	case s.device == nil:
		return 0
	default:
		return s.pollAfter()
	}
}
