package helm

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	obj "github.com/drover-dev/drover/internal/workload/tool/objects"
)

// createRecord records a revision. It first creates the namespace if that is wanted and not known
// to exist.
func (o *operation) createRecord(ctx context.Context, rec *record) error {
	wanted := o.want.Options.Install.CreateNamespace == nil || *o.want.Options.Install.CreateNamespace
	known := namespaceOf{cluster: o.cluster.Key().String(), name: rec.Namespace}
	if _, ok := o.engine.namespaces.Load(known); !ok && wanted && rec.Version == 1 {
		// An account that may not create namespaces can use existing ones.
		if err := o.createNamespace(ctx); err != nil && !apierrors.IsForbidden(err) {
			return err
		}
	}
	err := o.records.create(ctx, rec)
	if apierrors.IsNotFound(err) && wanted { // the namespace was deleted since
		if err := o.createNamespace(ctx); err != nil {
			return err
		}
		err = o.records.create(ctx, rec)
	}
	if err == nil {
		o.engine.namespaces.Store(known, struct{}{})
	}
	return err
}

// namespaceOf identifies a namespace that existed before.
type namespaceOf struct{ cluster, name string }

func (o *operation) createNamespace(ctx context.Context) error {
	name := o.want.ID.Namespace
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"name": name}}}
	_, err := o.cluster.Kubernetes().CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{FieldManager: fieldManager})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return obj.Classify(err)
}
