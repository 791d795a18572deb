// Package template reconciles PacketMachineTemplates. It reports in their status what a machine of
// the template offers, so that an autoscaler can size a group that has no machine yet.
//
// It reads the plan from the Packet API once per template and machine type, with the credentials of
// the cluster that uses the template. A template that no cluster uses has no status. Start with
// Reconcile, then capacity.go.
package template

import (
	"context"
	"slices"

	ctrl "sigs.k8s.io/controller-runtime"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/util"
	"sigs.k8s.io/cluster-api/util/annotations"

	infrav1 "github.com/drover-dev/drover/api/infrastructure/v1beta1"
	"github.com/drover-dev/drover/internal/controllers/packet/failure"
	"github.com/drover-dev/drover/internal/controllers/reconcile"
	"github.com/drover-dev/drover/internal/metal/access"
	"github.com/drover-dev/drover/internal/metal/client"
)

// Controller reconciles PacketMachineTemplates.
type Controller struct {
	// Client reads from the manager's cache.
	Client ctrlclient.Client
	// Access returns the Packet API of a cluster.
	Access *access.Source
	// WatchFilter limits the controller to objects with this value of the watch label; empty means
	// all.
	WatchFilter string
}

// scope is one reconcile.
type scope struct {
	*reconcile.Visit[*infrav1.PacketMachineTemplate]

	cluster *infrav1.PacketCluster // whose machines are created from the template
}

// Reconcile fills in the status of one template.
func (c *Controller) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	s, err := c.open(ctx, req.NamespacedName)
	if err != nil || s == nil {
		return reconcile.Result(err, 0)
	}
	err = reconcile.Run(ctx, s, []reconcile.Step[*scope]{failure.Step("reading the plan", c.readPlan)})
	return s.Close(ctx, err, 0)
}

// open returns nil if the status is complete, or if no cluster uses the template.
func (c *Controller) open(ctx context.Context, key ctrlclient.ObjectKey) (*scope, error) {
	s := &scope{}
	v, err := reconcile.Opening[*infrav1.PacketMachineTemplate]{
		Client: c.Client,
		Skip: func(ctx context.Context, t *infrav1.PacketMachineTemplate) (_ bool, err error) {
			if !t.DeletionTimestamp.IsZero() || t.Status.MachineType == t.Spec.Template.Spec.MachineType {
				return true, nil
			}
			s.cluster, err = c.findCluster(ctx, t)
			return s.cluster == nil, err
		},
	}.Open(ctx, key, &infrav1.PacketMachineTemplate{})
	if err != nil || v == nil {
		return nil, err
	}
	s.Visit = v
	return s, nil
}

// findCluster returns the PacketCluster whose machines are created from the template, or nil if
// there is none or it is paused.
func (c *Controller) findCluster(ctx context.Context, t *infrav1.PacketMachineTemplate) (*infrav1.PacketCluster, error) {
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

// readPlan reads the plan of the machine type, which the API may not know.
func (c *Controller) readPlan(ctx context.Context, s *scope) error {
	api, err := c.Access.For(ctx, s.cluster)
	if err != nil {
		return err
	}
	plans, err := api.Plans(ctx, s.cluster.Spec.ProjectID)
	if err != nil {
		return err
	}
	wanted := s.Object.Spec.Template.Spec.MachineType
	s.Object.Status = status(wanted, find(plans, wanted))
	return nil
}

func find(plans []client.Plan, slug string) *client.Plan {
	i := slices.IndexFunc(plans, func(p client.Plan) bool { return p.Slug == slug })
	if i < 0 {
		return nil
	}
	return &plans[i]
}
