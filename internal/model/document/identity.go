package document

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// ID identifies an object. The version of its API doesn't matter.
type ID struct{ Group, Kind, Namespace, Name string }

// String returns kind and name, such as "Cluster/dev".
func (id ID) String() string { return fmt.Sprintf("%q", id.Kind+"/"+id.Name) }

// idOf identifies an object that may lack its namespace.
func idOf(value map[string]any, namespace string) ID {
	group, _, grouped := strings.Cut(text(value, "apiVersion"), "/")
	if !grouped {
		group = ""
	}
	metadata, _ := value["metadata"].(map[string]any)
	id := ID{Group: group, Kind: text(value, "kind"), Namespace: text(metadata, "namespace"), Name: text(metadata, "name")}
	if id.Namespace == "" {
		id.Namespace = namespace
	}
	return id
}

func text(value map[string]any, key string) string {
	s, _ := value[key].(string)
	return s
}

// adapt returns a desired object that leaves the default namespace out, or names it, as the
// document does.
func (f *file) adapt(desired, current map[string]any) map[string]any {
	metadata, _ := desired["metadata"].(map[string]any)
	existing, _ := current["metadata"].(map[string]any)
	want, have := text(metadata, "namespace"), text(existing, "namespace")
	if want == have || (want != "" && have != "") || f.namespace == "" {
		return desired
	}
	adapted := maps.Clone(desired)
	named := maps.Clone(metadata)
	delete(named, "namespace")
	if have != "" {
		named["namespace"] = have
	}
	adapted["metadata"] = named
	return adapted
}

// checkLists rejects a file that has a desired object in a List, because that object would be added
// a second time.
func (f *file) checkLists(wanted []object) error {
	for _, s := range f.segments {
		items, _ := s.value["items"].([]any)
		if s.id.Kind != "List" {
			continue
		}
		for _, item := range items {
			value, _ := item.(map[string]any)
			id := idOf(value, f.namespace)
			if slices.ContainsFunc(wanted, func(o object) bool { return o.id == id }) {
				return fmt.Errorf("the file has %s in a List: make each object a document", id)
			}
		}
	}
	return nil
}

// IDOf identifies an object. An object without a namespace gets the given one.
func IDOf(object map[string]any, namespace string) ID { return idOf(object, namespace) }
