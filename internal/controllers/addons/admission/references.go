package admission

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	"github.com/drover-dev/drover/internal/model/delegation"
)

// references are the parts of a spec that may refer to other namespaces.
type references struct {
	account     string
	credentials *addonsv1.Credentials
	tls         *addonsv1.TLSConfig
}

// permissions rejects an object without a service account if its namespace requires one, or if it
// refers to other namespaces. What an account may use is checked when it is used.
func (o Options) permissions(ctx context.Context, obj metav1.Object, r references) (field.ErrorList, error) {
	if r.account != "" {
		return nil, nil
	}
	spec := field.NewPath("spec")
	err := o.Policy.RequireAccount(ctx, obj.GetNamespace(), r.account)
	if denied := (*delegation.DeniedError)(nil); errors.As(err, &denied) {
		return field.ErrorList{field.Required(spec.Child("serviceAccountName"), denied.Message)}, nil
	}
	var problems field.ErrorList
	if c := r.credentials; c != nil {
		problems = append(problems, sameNamespace(spec.Child("credentials", "secret", "namespace"), c.Secret.Namespace, obj.GetNamespace())...)
	}
	if t := r.tls; t != nil && t.CASecretRef != nil {
		problems = append(problems, sameNamespace(spec.Child("tlsConfig", "caSecret", "namespace"), t.CASecretRef.Namespace, obj.GetNamespace())...)
	}
	return problems, err
}

// sameNamespace rejects a reference to another namespace.
func sameNamespace(path *field.Path, namespace, own string) field.ErrorList {
	if namespace == "" || namespace == own {
		return nil
	}
	return field.ErrorList{field.Forbidden(path, fmt.Sprintf(
		"must be %q, or name an account that may get the object in spec.serviceAccountName", own))}
}
