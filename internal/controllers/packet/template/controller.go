// Package template reconciles PacketMachineTemplates: it tells in their status what a machine of the template offers, so that an autoscaler
// can size a group that has no machine yet.
//
// It asks the Packet API for the plan once per template and machine type, through the cluster that uses the template. A template that no
// cluster uses stays without a status. Start with Reconcile, then capacity.go.
package template

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"sigs.k8s.io/cluster-api/util"
	"sigs.k8s.io/cluster-api/util/annotations"
	"sigs.k8s.io/cluster-api/util/predicates"

	infrav1 "github.com/drover-dev/drover/api/infrastructure/v1beta1"
	"github.com/drover-dev/drover/internal/controllers/packet/outcome"
	"github.com/drover-dev/drover/internal/controllers/reconcile"
	"github.com/drover-dev/drover/internal/metal/access"
	"github.com/drover-dev/drover/internal/metal/client"
)

const name = "packetmachinetemplate"

// Controller reconciles PacketMachineTemplates.
type Controller struct {
	// Client reads from the manager's cache.
	Client ctrlclient.Client
	// Access finds the Packet API of a cluster.
	Access *access.Source
	// WatchFilter limits the controller to objects with this value of the watch label; empty means all.
	WatchFilter string
}

// SetupWithManager makes the controller listen to templates. Cluster API makes the cluster that uses one its owner, which is an event.
func (c *Controller) SetupWithManager(mgr ctrl.Manager, o controller.Options) error {
	log := mgr.GetLogger().WithValues("controller", name)
	err := ctrl.NewControllerManagedBy(mgr).
		Named(name).
		For(&infrav1.PacketMachineTemplate{}, builder.WithPredicates(predicates.ResourceHasFilterLabel(mgr.GetScheme(), log, c.WatchFilter))).
		WithOptions(reconcile.NewGuard(mgr, "PacketMachineTemplate").Options(o)).
		Complete(c)
	if err != nil {
		return fmt.Errorf("making controller %q: %w", name, err)
	}
	return nil
}

// Reconcile fills in the status of one template.
func (c *Controller) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	t := &infrav1.PacketMachineTemplate{}
	if err := c.Client.Get(ctx, req.NamespacedName, t); err != nil {
		return ctrl.Result{}, ctrlclient.IgnoreNotFound(err)
	}
	wanted := t.Spec.Template.Spec.MachineType
	if !t.DeletionTimestamp.IsZero() || t.Status.MachineType == wanted {
		return ctrl.Result{}, nil
	}
	cluster, err := c.user(ctx, t)
	if err != nil || cluster == nil {
		return ctrl.Result{}, err
	}
	plan, err := c.plan(ctx, cluster, wanted)
	if wait := outcome.Of("asking for plan "+wanted, err); wait != nil {
		ctrl.LoggerFrom(ctx).V(2).Info("Packet API did not tell the plan", "plan", wanted, "error", err.Error())
		return ctrl.Result{RequeueAfter: outcome.Jitter(wait.After)}, nil
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	before := t.DeepCopy()
	t.Status = status(wanted, plan)
	return ctrl.Result{}, c.Client.Status().Patch(ctx, t, ctrlclient.MergeFrom(before))
}

// user returns the PacketCluster whose machines are made from the template, nil if there is none that may be used now.
func (c *Controller) user(ctx context.Context, t *infrav1.PacketMachineTemplate) (*infrav1.PacketCluster, error) {
	owner, err := util.GetOwnerCluster(ctx, c.Client, t.ObjectMeta)
	if err != nil || owner == nil || annotations.IsPaused(owner, t) {
		return nil, ctrlclient.IgnoreNotFound(err)
	}
	cluster := &infrav1.PacketCluster{}
	err = c.Client.Get(ctx, ctrlclient.ObjectKey{Namespace: t.Namespace, Name: owner.Spec.InfrastructureRef.Name}, cluster)
	if err != nil {
		return nil, ctrlclient.IgnoreNotFound(err)
	}
	return cluster, nil
}

// plan returns nil if the API does not know the machine type.
func (c *Controller) plan(ctx context.Context, cluster *infrav1.PacketCluster, slug string) (*client.Plan, error) {
	api, err := c.Access.For(ctx, cluster)
	if err != nil {
		return nil, err
	}
	plans, err := api.Plans(ctx, cluster.Spec.ProjectID)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(plans, func(p client.Plan) bool { return p.Slug == slug })
	if i < 0 {
		return nil, nil
	}
	return &plans[i], nil
}

// status notes the machine type even if nothing is known about it, so that it is not asked for again.
func status(machineType string, plan *client.Plan) infrav1.PacketMachineTemplateStatus {
	s := infrav1.PacketMachineTemplateStatus{MachineType: machineType}
	if plan == nil {
		return s
	}
	s.Capacity = capacity(plan.Specs)
	s.NodeInfo = infrav1.NodeInfo{Architecture: architecture(plan), OperatingSystem: string(corev1.Linux)}
	return s
}
