package admission

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	droverv1 "github.com/drover-dev/drover/api/drover/v1alpha1"
	"github.com/drover-dev/drover/internal/controllers/requester"
	"github.com/drover-dev/drover/internal/model/audit"
	"github.com/drover-dev/drover/internal/model/spec"
)

// configWebhooks are the webhooks of all kinds that a Cluster references.
type configWebhooks struct {
	docker     configRules[*anywherev1.DockerDatacenterConfig]
	datacenter configRules[*anywherev1.PacketDatacenterConfig]
	machine    configRules[*anywherev1.PacketMachineConfig]
	flux       configRules[*anywherev1.FluxConfig]
	gitOps     configRules[*anywherev1.GitOpsConfig]
	oidc       configRules[*anywherev1.OIDCConfig]
}

// newConfigWebhooks returns the webhooks, which record changes for the Clusters concerned.
func newConfigWebhooks(clusters *clusterRules) configWebhooks {
	users := clusters.users
	changes := &configChanges{reader: clusters.reader, moves: clusters.moves, records: clusters.records, now: clusters.now}
	return configWebhooks{
		docker: configRules[*anywherev1.DockerDatacenterConfig]{users: users, changes: changes},
		datacenter: configRules[*anywherev1.PacketDatacenterConfig]{
			users: users, changes: changes, spec: func(o *anywherev1.PacketDatacenterConfig) any { return o.Spec }, fixed: always, more: clusters.credentials.ofDatacenter,
		},
		machine: configRules[*anywherev1.PacketMachineConfig]{users: users, changes: changes, spec: func(o *anywherev1.PacketMachineConfig) any { return o.Spec }, more: clusters.machineConfigWithinQuota},
		flux: configRules[*anywherev1.FluxConfig]{
			users: users, changes: changes, spec: func(o *anywherev1.FluxConfig) any { return o.Spec }, fixed: always,
			defaulted: func(o *anywherev1.FluxConfig) any { return spec.DefaultFlux(o.Spec) },
		},
		gitOps: configRules[*anywherev1.GitOpsConfig]{users: users, changes: changes, spec: func(o *anywherev1.GitOpsConfig) any { return o.Spec }, fixed: always},
		oidc:   configRules[*anywherev1.OIDCConfig]{users: users, changes: changes, spec: func(o *anywherev1.OIDCConfig) any { return o.Spec }, fixed: ofManagement},
	}
}

func (c configWebhooks) add(mgr ctrl.Manager) error {
	return errors.Join(
		addConfig(mgr, &anywherev1.DockerDatacenterConfig{}, c.docker),
		addConfig(mgr, &anywherev1.PacketDatacenterConfig{}, c.datacenter),
		addConfig(mgr, &anywherev1.PacketMachineConfig{}, c.machine),
		addConfig(mgr, &anywherev1.FluxConfig{}, c.flux),
		addConfig(mgr, &anywherev1.GitOpsConfig{}, c.gitOps),
		addConfig(mgr, &anywherev1.OIDCConfig{}, c.oidc),
	)
}

func addConfig[T client.Object](mgr ctrl.Manager, object T, rules configRules[T]) error {
	if err := ctrl.NewWebhookManagedBy(mgr, object).WithValidator(&rules).Complete(); err != nil {
		return fmt.Errorf("adding the webhook of %T: %w", object, err)
	}
	return nil
}

// configRules are the webhooks of objects that a Cluster references.
type configRules[T client.Object] struct {
	users *requester.Reviewer
	// spec returns the part of an object to compare; nil if there is none.
	spec func(T) any
	// defaulted returns that part with its defaults, if objects that leave them out are the same; nil
	// if there are none.
	defaulted func(T) any
	// fixed reports whether it is immutable; nil means that it is not.
	fixed func(client.Object) bool
	// more is an additional check; nil if there is none.
	more func(context.Context, T) error
	// changes records changes; nil means that none are recorded.
	changes *configChanges
}

func always(client.Object) bool { return true }

// ofManagement reports whether an object belongs to a management cluster.
func ofManagement(o client.Object) bool {
	return o.GetAnnotations()[anywherev1.ManagedByAnnotation] == ""
}

// ValidateCreate checks a new object.
func (r *configRules[T]) ValidateCreate(ctx context.Context, o T) (admission.Warnings, error) {
	if err := Reserved(ctx, r.users, o); err != nil {
		return nil, err
	}
	if err := r.content(ctx, o); err != nil {
		return nil, err
	}
	return nil, r.changes.recordReplaced(ctx, o, slices.Concat(audit.Switched(nil, o.GetAnnotations()), audit.Changes(nil, r.specOf(o))))
}

func (r *configRules[T]) content(ctx context.Context, o T) error {
	if wrong := spec.ValidateObject(o); len(wrong) > 0 {
		return invalid(wrong.Error())
	}
	if r.more != nil {
		return r.more(ctx, o)
	}
	return nil
}

// specOf returns the part of an object to compare.
func (r *configRules[T]) specOf(o T) any {
	if r.spec == nil {
		return nil
	}
	return r.spec(o)
}

// compared returns the part of an object to compare, with its defaults.
func (r *configRules[T]) compared(o T) any {
	if r.defaulted != nil {
		return r.defaulted(o)
	}
	return r.specOf(o)
}

// ValidateUpdate checks an updated object. Everything may change while it is paused, as during a
// move.
func (r *configRules[T]) ValidateUpdate(ctx context.Context, was, is T) (admission.Warnings, error) {
	if !is.GetDeletionTimestamp().IsZero() {
		return nil, nil
	}
	if !equality.Semantic.DeepEqual(r.compared(was), r.compared(is)) {
		if paused := was.GetAnnotations()[anywherev1.PausedAnnotation] == "true"; !paused && r.fixed != nil && r.fixed(was) {
			return nil, invalid("spec: Forbidden: config is immutable; create an object with another name")
		}
		if err := r.content(ctx, is); err != nil {
			return nil, err
		}
	}
	return nil, r.changes.record(ctx, is, slices.Concat(audit.Switched(was.GetAnnotations(), is.GetAnnotations()), audit.Changes(r.specOf(was), r.specOf(is))))
}

// ValidateDelete allows every deletion by people: a Cluster reports missing objects.
func (r *configRules[T]) ValidateDelete(ctx context.Context, o T) (admission.Warnings, error) {
	if r.changes != nil {
		if err := confirmedRemovalOf(ctx, r.changes.reader, o); err != nil {
			return nil, err
		}
	}
	return nil, r.changes.recordReplaced(ctx, o, []droverv1.AuditedChange{{Path: "metadata.deletionTimestamp"}})
}
