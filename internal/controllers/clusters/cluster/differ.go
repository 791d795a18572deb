package cluster

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/drover-dev/drover/internal/controllers/clusters/build"
)

// intent returns the fields of an object to apply.
func intent(o client.Object, scheme *runtime.Scheme) (*unstructured.Unstructured, error) {
	kind, err := apiutil.GVKForObject(o, scheme)
	if err != nil {
		return nil, err
	}
	content, err := asMap(o)
	if err != nil {
		return nil, fmt.Errorf("writing %s %q: %w", kind.Kind, o.GetName(), err)
	}
	delete(content, "status")
	if metadata, ok := content["metadata"].(map[string]any); ok {
		delete(metadata, "creationTimestamp")
	}
	out := &unstructured.Unstructured{Object: content}
	out.SetGroupVersionKind(kind)
	return out, nil
}

func asMap(o any) (map[string]any, error) {
	text, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	var out map[string]any
	err = json.Unmarshal(text, &out)
	return out, err
}

// differs reports whether an object must be applied: its intent has changed, or somebody has
// changed a field of ours.
func differs(wanted *unstructured.Unstructured, there client.Object) (bool, error) {
	if there.GetAnnotations()[build.ContentAnnotation] != wanted.GetAnnotations()[build.ContentAnnotation] {
		return true, nil
	}
	have, err := asMap(there)
	if err != nil {
		return false, fmt.Errorf("reading %T %q: %w", there, there.GetName(), err)
	}
	mine := maps.Clone(wanted.Object)
	delete(mine, "apiVersion") // Cached objects have none.
	delete(mine, "kind")
	return !covers(have, mine), nil
}

// covers reports whether have contains want. Other fields belong to others or are defaults; a list
// is compared as a whole.
func covers(have, want any) bool {
	switch want := want.(type) {
	case map[string]any:
		have, ok := have.(map[string]any)
		if !ok {
			return len(want) == 0 && !ok
		}
		for key, value := range want {
			if there, ok := have[key]; (!ok && !empty(value)) || (ok && !covers(there, value)) {
				return false
			}
		}
		return true
	case []any:
		have, ok := have.([]any)
		if !ok || len(have) != len(want) {
			return len(want) == 0 && len(have) == 0
		}
		return !slices.ContainsFunc(indexes(want), func(i int) bool { return !covers(have[i], want[i]) })
	default:
		return reflect.DeepEqual(have, want)
	}
}

func indexes(list []any) []int {
	out := make([]int, len(list))
	for i := range list {
		out[i] = i
	}
	return out
}

// empty reports whether a value equals an unset one.
func empty(value any) bool {
	switch value := value.(type) {
	case nil:
		return true
	case map[string]any:
		for _, v := range value {
			if !empty(v) {
				return false
			}
		}
		return true
	case []any:
		return len(value) == 0
	default:
		return false
	}
}
