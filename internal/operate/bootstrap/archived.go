package bootstrap

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/drover-dev/drover/internal/model/backup/objects"
)

// archived is a management plane of which only a backup is left. It reads and changes the objects
// of the backup in memory, and deletes none. Anything else that a client can do is not supported.
type archived struct {
	client.Client

	objects map[archivedKey]*unstructured.Unstructured
	// order are the keys as they were in the backup.
	order []archivedKey
	kinds *runtime.Scheme
	// definitions reads CRDs from where the objects go.
	definitions client.Reader
}

type archivedKey struct {
	schema.GroupKind
	types.NamespacedName
}

func newArchived(set objects.Set, destination client.Client) *archived {
	a := &archived{objects: map[archivedKey]*unstructured.Unstructured{}, kinds: destination.Scheme(), definitions: destination}
	for _, u := range set {
		key := keyOf(u)
		if a.objects[key] == nil {
			a.order = append(a.order, key)
		}
		a.objects[key] = u.DeepCopy()
	}
	return a
}

func keyOf(u *unstructured.Unstructured) archivedKey {
	return archivedKey{u.GroupVersionKind().GroupKind(), client.ObjectKeyFromObject(u)}
}

// Reader returns a reader of the objects in a backup.
func Reader(set objects.Set, kinds *runtime.Scheme) client.Reader {
	a := &archived{objects: map[archivedKey]*unstructured.Unstructured{}, kinds: kinds}
	for _, u := range set {
		a.objects[keyOf(u)], a.order = u, append(a.order, keyOf(u))
	}
	return a
}

// Get implements client.Client.
func (a *archived) Get(_ context.Context, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	kind, err := apiutil.GVKForObject(obj, a.kinds)
	if err != nil {
		return err
	}
	found := a.objects[archivedKey{kind.GroupKind(), key}]
	if found == nil {
		return apierrors.NewNotFound(schema.GroupResource{Group: kind.Group, Resource: strings.ToLower(kind.Kind)}, key.Name)
	}
	return load(found, obj)
}

// load copies an object into one that a caller passed.
func load(from *unstructured.Unstructured, into client.Object) error {
	if u, ok := into.(*unstructured.Unstructured); ok {
		from.DeepCopyInto(u)
		return nil
	}
	return objects.As(from, into)
}

// List implements client.Client.
func (a *archived) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if definitions, ok := list.(*apiextensionsv1.CustomResourceDefinitionList); ok {
		return a.definitions.List(ctx, definitions, opts...)
	}
	o := (&client.ListOptions{}).ApplyOptions(opts)
	if o.FieldSelector != nil {
		return errors.New("backups can't be searched by fields")
	}
	kind, err := apiutil.GVKForObject(list, a.kinds)
	if err != nil {
		return err
	}
	kind.Kind = strings.TrimSuffix(kind.Kind, "List")
	found := &unstructured.UnstructuredList{}
	for _, key := range a.order {
		u := a.objects[key]
		if key.GroupKind != kind.GroupKind() || o.Namespace != "" && key.Namespace != o.Namespace || o.LabelSelector != nil && !o.LabelSelector.Matches(labels.Set(u.GetLabels())) {
			continue
		}
		found.Items = append(found.Items, *u.DeepCopy())
	}
	return loadList(found, list)
}

func loadList(from *unstructured.UnstructuredList, into client.ObjectList) error {
	if u, ok := into.(*unstructured.UnstructuredList); ok {
		u.Items = from.Items
		return nil
	}
	items := make([]map[string]any, 0, len(from.Items))
	for i := range from.Items {
		items = append(items, from.Items[i].Object)
	}
	data, err := json.Marshal(map[string]any{"items": items})
	if err != nil {
		return err
	}
	return json.Unmarshal(data, into)
}

// Patch implements client.Client for merge patches.
func (a *archived) Patch(_ context.Context, obj client.Object, patch client.Patch, _ ...client.PatchOption) error {
	kind, err := apiutil.GVKForObject(obj, a.kinds)
	if err != nil {
		return err
	}
	found := a.objects[archivedKey{kind.GroupKind(), client.ObjectKeyFromObject(obj)}]
	if found == nil || patch.Type() != types.MergePatchType {
		return fmt.Errorf("changing %s %q of the backup by a patch of type %s is not supported", kind.Kind, client.ObjectKeyFromObject(obj), patch.Type())
	}
	data, err := patch.Data(obj)
	if err != nil {
		return err
	}
	var change map[string]any
	if err := json.Unmarshal(data, &change); err != nil {
		return err
	}
	merge(found.Object, change)
	return nil
}

// merge applies a JSON merge patch.
func merge(into, change map[string]any) {
	for key, value := range change {
		fields, isMap := value.(map[string]any)
		below, wasMap := into[key].(map[string]any)
		switch {
		case value == nil:
			delete(into, key)
		case isMap && wasMap:
			merge(below, fields)
		case isMap:
			below = map[string]any{}
			merge(below, fields)
			into[key] = below
		default:
			into[key] = value
		}
	}
}

// Delete implements client.Client: a backup keeps everything.
func (a *archived) Delete(context.Context, client.Object, ...client.DeleteOption) error { return nil }

// remove makes the backup look as if it didn't have an object.
func (a *archived) remove(key archivedKey) {
	delete(a.objects, key)
	for i := range a.order {
		if a.order[i] == key {
			a.order = append(a.order[:i:i], a.order[i+1:]...)
			return
		}
	}
}
