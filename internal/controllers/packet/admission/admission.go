// Package admission holds the rules for the Packet kinds that a schema can't express: fields that
// exclude each other, and immutable fields.
//
// Each rule is a function from objects to a list of problems. Defaults are in the schema, so
// nothing is mutated here. An update that leaves the spec unchanged is never rejected, since
// finalizers must come off even invalid objects. Start with Setup.
package admission

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"sigs.k8s.io/cluster-api/util/topology"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	infrav1 "github.com/drover-dev/drover/api/infrastructure/v1beta1"
)

// Setup adds the webhooks of all four kinds to mgr.
func Setup(mgr ctrl.Manager) error {
	for kind, setup := range map[string]func(ctrl.Manager) error{
		"PacketCluster": func(mgr ctrl.Manager) error {
			return add(mgr, &infrav1.PacketCluster{}, validator[*infrav1.PacketCluster]{"PacketCluster", createCluster, updateCluster, warnCluster})
		},
		"PacketClusterTemplate": func(mgr ctrl.Manager) error {
			return add(mgr, &infrav1.PacketClusterTemplate{}, validator[*infrav1.PacketClusterTemplate]{"PacketClusterTemplate", createClusterTemplate, updateClusterTemplate, nil})
		},
		"PacketMachine": func(mgr ctrl.Manager) error {
			return add(mgr, &infrav1.PacketMachine{}, validator[*infrav1.PacketMachine]{"PacketMachine", createMachine, updateMachine, nil})
		},
		"PacketMachineTemplate": func(mgr ctrl.Manager) error {
			return add(mgr, &infrav1.PacketMachineTemplate{}, validator[*infrav1.PacketMachineTemplate]{"PacketMachineTemplate", createMachineTemplate, updateMachineTemplate, warnMachineTemplate})
		},
	} {
		if err := setup(mgr); err != nil {
			return fmt.Errorf("adding webhook %q: %w", kind, err)
		}
	}
	return nil
}

func add[T runtime.Object](mgr ctrl.Manager, obj T, v admission.Validator[T]) error {
	return ctrl.NewWebhookManagedBy(mgr, obj).WithValidator(v).Complete()
}

// validator runs the rules of one kind.
type validator[T ctrlclient.Object] struct {
	kind   string
	create func(T) field.ErrorList
	// update receives the old and the new object.
	update func(T, T) field.ErrorList
	// warn may be nil.
	warn func(T) admission.Warnings
}

// ValidateCreate checks a new object.
func (v validator[T]) ValidateCreate(_ context.Context, obj T) (admission.Warnings, error) {
	return v.warnings(obj), v.reject(obj, v.create(obj))
}

// ValidateUpdate checks a changed object. It accepts dry runs of the topology controller, which
// changes templates by creating copies.
func (v validator[T]) ValidateUpdate(ctx context.Context, was, is T) (admission.Warnings, error) {
	if req, err := admission.RequestFromContext(ctx); err == nil && topology.IsDryRunRequest(req, is) {
		return nil, nil
	}
	return v.warnings(is), v.reject(is, v.update(was, is))
}

// ValidateDelete rejects nothing.
func (v validator[T]) ValidateDelete(context.Context, T) (admission.Warnings, error) { return nil, nil }

func (v validator[T]) warnings(obj T) admission.Warnings {
	if v.warn == nil {
		return nil
	}
	return v.warn(obj)
}

func (v validator[T]) reject(obj T, problems field.ErrorList) error {
	if len(problems) == 0 {
		return nil
	}
	return apierrors.NewInvalid(infrav1.GroupVersion.WithKind(v.kind).GroupKind(), obj.GetName(), problems)
}
