package inspect

import (
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/internal/base/text"
)

// namesShown bounds how many names an error lists.
const namesShown = 10

// NotFoundError means that no object of a kind has the name that was asked for.
type NotFoundError struct {
	// Kind is the kind as people call it, such as "cluster".
	Kind string
	// Namespace is empty if all namespaces were searched.
	Namespace, Name string
	// Others are the objects of that kind that exist, as namespace/name.
	Others []string
}

func (e *NotFoundError) Error() string {
	message := fmt.Sprintf("%s %q not found", e.Kind, e.Name)
	if e.Namespace != "" {
		message += fmt.Sprintf(" in namespace %q", e.Namespace)
	}
	if len(e.Others) > 0 {
		message += fmt.Sprintf("; existing %ss: %s", e.Kind, text.FirstN(e.Others, namesShown))
	}
	return message
}

// query is what a caller is looking for.
type query struct{ kind, namespace, name string }

// find returns the only object of a name. An empty namespace matches every namespace.
func find[T any](all []T, q query, keyOf func(*T) client.ObjectKey) (*T, error) {
	var found *T
	var matches, others []string
	for i := range all {
		key := keyOf(&all[i])
		others = append(others, key.String())
		if key.Name == q.name && (q.namespace == "" || key.Namespace == q.namespace) {
			found = &all[i]
			matches = append(matches, key.String())
		}
	}
	switch len(matches) {
	case 0:
		return nil, &NotFoundError{Kind: q.kind, Namespace: q.namespace, Name: q.name, Others: others}
	case 1:
		return found, nil
	default:
		return nil, fmt.Errorf("found %d %ss named %q: %s; select one with --namespace", len(matches), q.kind, q.name, text.FirstN(matches, namesShown))
	}
}
