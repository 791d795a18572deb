package upgrade

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	"sigs.k8s.io/cluster-api/controllers/clustercache"

	infrav1 "github.com/drover-dev/drover/api/infrastructure/v1beta1"
	"github.com/drover-dev/drover/internal/base/text"
	"github.com/drover-dev/drover/internal/controllers/capi/hooks"
	"github.com/drover-dev/drover/internal/metal/access"
	"github.com/drover-dev/drover/internal/metal/client"
	"github.com/drover-dev/drover/internal/model/inplace"
)

const (
	// claimAnnotation is on the Machine that is being upgraded, with the version.
	claimAnnotation = "upgrade.drover.dev/version"
	// skipped is the value of the annotation by which an upgrade stops health checks from replacing
	// its machine.
	skipped = "upgrade.drover.dev"
	// pollSeconds is how soon a step follows the last one. Neither metal nor Cluster API's hook can
	// be watched.
	pollSeconds = 2
	// failedSeconds is how soon a step that failed is tried again.
	failedSeconds = 10
	// impossibleSeconds is how soon metal is asked again whether it can upgrade machines by now.
	impossibleSeconds = 60
)

// Reasons of events.
const (
	startedReason  = "InPlaceUpgradeStarted"
	finishedReason = "InPlaceUpgradeFinished"
	failedReason   = "InPlaceUpgradeFailed"
)

// Upgrader upgrades machines.
type Upgrader struct {
	// Client reads from the cache, Live from the API server.
	Client ctrlclient.Client
	Live   ctrlclient.Reader
	// Access returns the Packet API of a cluster.
	Access *access.Source
	// Workloads connects to workload clusters.
	Workloads clustercache.ClusterCache
	Events    record.EventRecorder
	Clock     clock.PassiveClock

	// claiming serializes claims: one machine of a cluster at a time.
	claiming sync.Mutex
}

// Serve adds the hooks. Machines of rollouts that replace them are none of their business.
func (u *Upgrader) Serve(c *hooks.Client) {
	hooks.Serve(c, hooks.Hook[*runtimehooksv1.CanUpdateMachineRequest, *runtimehooksv1.CanUpdateMachineResponse]{
		Of: runtimehooksv1.CanUpdateMachine, Applies: applies, Call: u.CanUpdateMachine,
	})
	hooks.Serve(c, hooks.Hook[*runtimehooksv1.CanUpdateMachineSetRequest, *runtimehooksv1.CanUpdateMachineSetResponse]{
		Of: runtimehooksv1.CanUpdateMachineSet, Applies: applies, Call: u.CanUpdateMachineSet,
	})
	hooks.Serve(c, hooks.Hook[*runtimehooksv1.UpdateMachineRequest, *runtimehooksv1.UpdateMachineResponse]{
		Of: runtimehooksv1.UpdateMachine, Call: u.UpdateMachine, // What has started is finished, whatever the strategy is by now.
	})
}

// applies reports whether a Machine, or the machines of a MachineSet, are upgraded in place.
func applies(o ctrlclient.Object) bool {
	if set, ok := o.(*clusterv1.MachineSet); ok {
		return inplace.Wanted(set.Spec.Template.Annotations)
	}
	return inplace.Wanted(o.GetAnnotations())
}

// UpdateMachine performs the next step for a machine. Cluster API repeats it until it asks for no
// repetition. Problems become messages in the conditions of the Machine, not errors, which Cluster
// API would only log.
func (u *Upgrader) UpdateMachine(ctx context.Context, in *runtimehooksv1.UpdateMachineRequest, out *runtimehooksv1.UpdateMachineResponse) error {
	v := &visit{Upgrader: u, desired: &in.Desired.Machine}
	next, err := v.run(ctx)
	if err == nil && next.action == actionDone {
		return nil
	}
	out.SetRetryAfterSeconds(pollSeconds)
	if next.message == impossible {
		out.SetRetryAfterSeconds(impossibleSeconds)
	}
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Upgrading a machine in place failed", "machine", in.Desired.Machine.Name)
		next.message = text.Truncate(err.Error())
		out.SetRetryAfterSeconds(failedSeconds)
	}
	out.SetMessage(inplace.StepPrefix + in.Desired.Machine.Spec.Version + ": " + next.message)
	return nil
}

// visit is one step of one machine.
type visit struct {
	*Upgrader

	desired *clusterv1.Machine
	machine *clusterv1.Machine
	api     *client.Client
	// deviceID is the machine's device; facts have the device's last upgrade.
	deviceID string
	// workload is nil while the cluster can't be reached.
	workload    ctrlclient.Client
	unreachable error
	facts
	evictable []corev1.Pod
}

func (v *visit) run(ctx context.Context) (step, error) {
	v.now, v.target = v.Clock.Now(), v.desired.Spec.Version
	for _, read := range []func(context.Context) error{v.readMachine, v.readDevice, v.readNode} {
		if err := read(ctx); err != nil {
			return step{}, err
		}
	}
	next := decide(v.facts)
	switch next.action {
	case actionClaim:
		return next, v.claim(ctx)
	case actionDrain:
		return v.drain(ctx, next)
	case actionOrder:
		return next, v.order(ctx)
	case actionDone:
		return next, v.finish(ctx)
	case actionRelease:
		return next, v.release(ctx)
	}
	if next.message == "waiting for the node" && v.unreachable != nil {
		next.message += ": " + v.unreachable.Error()
	}
	return next, nil
}

// readMachine reads the Machine, and which machine of its cluster is being upgraded.
func (v *visit) readMachine(ctx context.Context) error {
	v.machine = &clusterv1.Machine{}
	if err := v.Live.Get(ctx, ctrlclient.ObjectKeyFromObject(v.desired), v.machine); err != nil {
		return fmt.Errorf("reading the Machine: %w", err)
	}
	_, v.claimed = v.machine.Annotations[claimAnnotation]
	if v.claimed {
		return nil
	}
	var err error
	v.other, err = v.claimant(ctx, v.Client)
	return err
}

// claimant returns the other machine of the cluster that is being upgraded, or "".
func (v *visit) claimant(ctx context.Context, from ctrlclient.Reader) (string, error) {
	all := &clusterv1.MachineList{}
	of := ctrlclient.MatchingLabels{clusterv1.ClusterNameLabel: v.machine.Spec.ClusterName}
	if err := from.List(ctx, all, ctrlclient.InNamespace(v.machine.Namespace), of); err != nil {
		return "", fmt.Errorf("listing the machines of the cluster: %w", err)
	}
	for i := range all.Items {
		if _, claimed := all.Items[i].Annotations[claimAnnotation]; claimed && all.Items[i].Name != v.machine.Name {
			return all.Items[i].Name, nil
		}
	}
	return "", nil
}

// readDevice finds the device, and reads its last upgrade.
func (v *visit) readDevice(ctx context.Context) error {
	machine, cluster, owner := &infrav1.PacketMachine{}, &clusterv1.Cluster{}, &infrav1.PacketCluster{}
	if err := v.read(ctx, v.machine.Spec.InfrastructureRef.Name, machine); err != nil {
		return err
	}
	if err := v.read(ctx, v.machine.Spec.ClusterName, cluster); err != nil {
		return err
	}
	if err := v.read(ctx, cluster.Spec.InfrastructureRef.Name, owner); err != nil {
		return err
	}
	var err error
	if v.api, err = v.Access.For(ctx, owner); err != nil {
		return err
	}
	_, v.deviceID, _ = strings.Cut(ptr.Deref(machine.Spec.ProviderID, ""), "://")
	if v.deviceID == "" {
		return fmt.Errorf("PacketMachine %q has no device", machine.Name)
	}
	d, err := v.api.Device(ctx, v.deviceID)
	if err != nil {
		return err
	}
	v.upgradable, v.device = d.Upgradable, d.Upgrade
	return nil
}

func (v *visit) read(ctx context.Context, name string, into ctrlclient.Object) error {
	if err := v.Client.Get(ctx, ctrlclient.ObjectKey{Namespace: v.machine.Namespace, Name: name}, into); err != nil {
		return fmt.Errorf("reading %T %q: %w", into, name, err)
	}
	return nil
}

// readNode reads the node and its Pods. The API of the cluster may be unavailable while a control
// plane machine restarts.
func (v *visit) readNode(ctx context.Context) error {
	if !v.claimed {
		return nil
	}
	var err error
	key := ctrlclient.ObjectKey{Namespace: v.machine.Namespace, Name: v.machine.Spec.ClusterName}
	if v.workload, err = v.Workloads.GetUncachedClient(ctx, key); err != nil {
		v.unreachable = err
		return nil //nolint:nilerr // It is shown if the upgrade has to wait for it.
	}
	node := &corev1.Node{}
	if err := v.workload.Get(ctx, ctrlclient.ObjectKey{Name: v.machine.Status.NodeRef.Name}, node); err != nil {
		v.unreachable = err
		return nil //nolint:nilerr // It is shown if the upgrade has to wait for it.
	}
	v.node, v.cordoned = node, cordonedAt(node)
	v.drainTimeout = time.Duration(ptr.Deref(v.machine.Spec.Deletion.NodeDrainTimeoutSeconds, 0)) * time.Second
	if v.alone, err = isAlone(ctx, v.workload, node); err != nil {
		return err
	}
	v.evictable, err = podsToEvict(ctx, v.workload, node.Name)
	for i := range v.evictable {
		v.pods = append(v.pods, v.evictable[i].Namespace+"/"+v.evictable[i].Name)
	}
	return err
}

// claim marks the Machine as the one that is upgraded, and stops health checks from replacing it
// while its node is not ready.
func (v *visit) claim(ctx context.Context) error {
	v.claiming.Lock()
	defer v.claiming.Unlock()
	if other, err := v.claimant(ctx, v.Live); err != nil || other != "" {
		return err // It is shown with the next step.
	}
	err := v.patchMachine(ctx, func(annotations map[string]string) {
		annotations[claimAnnotation] = v.target
		if _, there := annotations[clusterv1.MachineSkipRemediationAnnotation]; !there {
			annotations[clusterv1.MachineSkipRemediationAnnotation] = skipped
		}
	})
	if err == nil {
		v.Events.Eventf(v.machine, corev1.EventTypeNormal, startedReason, "Started to upgrade machine %q to Kubernetes %s in place", v.machine.Name, v.target)
	}
	return err
}

func (v *visit) patchMachine(ctx context.Context, change func(annotations map[string]string)) error {
	before := v.machine.DeepCopy()
	if v.machine.Annotations == nil {
		v.machine.Annotations = map[string]string{}
	}
	change(v.machine.Annotations)
	if err := v.Client.Patch(ctx, v.machine, ctrlclient.MergeFrom(before)); err != nil {
		return fmt.Errorf("patching Machine %q: %w", v.machine.Name, err)
	}
	return nil
}

func (v *visit) drain(ctx context.Context, next step) (step, error) {
	if err := cordon(ctx, v.workload, v.node, v.now); err != nil {
		return next, err
	}
	blocked, err := evict(ctx, v.workload, v.evictable)
	if blocked != "" {
		v.cordoned, v.blocked = cordonedAt(v.node), blocked
		next = drain(v.facts)
	}
	return next, err
}

// order starts the upgrade of the device, again if it failed.
func (v *visit) order(ctx context.Context) error {
	if d := v.device; d != nil && d.State == client.UpgradeFailed && d.Version == v.target {
		v.Events.Eventf(v.machine, corev1.EventTypeWarning, failedReason, "Upgrading machine %q to Kubernetes %s in place failed and is tried again: %s",
			v.machine.Name, v.target, text.Truncate(d.Message))
	}
	return v.api.UpgradeDevice(ctx, v.deviceID, v.target)
}

// finish makes the node schedulable and lets the next machine start.
func (v *visit) finish(ctx context.Context) error {
	err := v.release(ctx)
	if err == nil {
		v.Events.Eventf(v.machine, corev1.EventTypeNormal, finishedReason, "Upgraded machine %q to Kubernetes %s in place", v.machine.Name, v.target)
	}
	return err
}

// release reverts claim and drain.
func (v *visit) release(ctx context.Context) error {
	if v.workload == nil || v.node == nil {
		return errors.New("the node can't be read")
	}
	if err := uncordon(ctx, v.workload, v.node); err != nil {
		return err
	}
	return v.patchMachine(ctx, func(annotations map[string]string) {
		delete(annotations, claimAnnotation)
		if annotations[clusterv1.MachineSkipRemediationAnnotation] == skipped {
			delete(annotations, clusterv1.MachineSkipRemediationAnnotation)
		}
	})
}
