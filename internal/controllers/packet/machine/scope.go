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
	"sigs.k8s.io/cluster-api/util"

	infrav1 "github.com/drover-dev/drover/api/infrastructure/v1beta1"
	"github.com/drover-dev/drover/internal/controllers/packet/outcome"
	"github.com/drover-dev/drover/internal/controllers/packet/visit"
	"github.com/drover-dev/drover/internal/metal/client"
	"github.com/drover-dev/drover/internal/metal/tags"
)

// providerPrefix makes a provider id of a device's id.
const providerPrefix = "equinixmetal://"

// scope is one reconcile: the objects it is about, and the facts that its steps find.
type scope struct {
	*visit.Visit
	controller *Controller

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
	v, err := visit.Opening{
		Client: c.Client, Finalizer: infrav1.MachineFinalizer,
		Conditions: []string{infrav1.InstanceReady, infrav1.BGPSessionReady, infrav1.BootstrapExecSucceeded, clusterv1.ReadyCondition},
		Owners: func(ctx context.Context) (visit.Owners, error) {
			err := s.loadOwners(ctx)
			return visit.Owners{Cluster: s.cluster, Missing: s.owner == nil}, err
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
	if apierrors.IsNotFound(err) && !s.machine.DeletionTimestamp.IsZero() {
		return nil
	}
	return fmt.Errorf("reading %s %q: %w", kind, name, err)
}

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

// identity is how the machine is named in tags. The claim is part of it before it is written, as it is known in advance.
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
	return i
}

func (s *scope) controlPlane() bool { return s.owner != nil && util.IsControlPlaneMachine(s.owner) }

func (s *scope) now() metav1.Time { return metav1.NewTime(s.controller.Clock.Now()) }

// close turns the facts into status and writes it.
func (s *scope) close(ctx context.Context, err error) (ctrl.Result, error) {
	if err == nil {
		s.provisioned = s.wasUp()
		s.report()
	}
	return s.Close(ctx, s.next(), err)
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
