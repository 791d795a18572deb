package helm

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	releaseutil "helm.sh/helm/v4/pkg/release/v1/util"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/drover-dev/drover/internal/base/safeyaml"
	"github.com/drover-dev/drover/internal/workload/tool"
	obj "github.com/drover-dev/drover/internal/workload/tool/objects"
)

// Marks of Helm on objects, and those of charts for Helm.
const (
	managedByLabel      = "app.kubernetes.io/managed-by"
	managedByHelm       = "Helm"
	nameAnnotation      = "meta.helm.sh/release-name"
	namespaceAnnotation = "meta.helm.sh/release-namespace"
	policyAnnotation    = "helm.sh/resource-policy"
	policyKeep          = "keep"
)

// object is an object of a release.
type object struct {
	obj.Object
	// owned reports that the object exists and belongs to the release. If false, existence and
	// owner are unknown.
	owned bool
	// clientSide reports that it was written before server-side apply.
	clientSide bool
}

func newObject(u *unstructured.Unstructured) *object {
	return &object{Object: obj.Object{Unstructured: u}}
}

// kept reports whether the chart wants the object to outlive the release.
func kept(u *unstructured.Unstructured) bool {
	return strings.EqualFold(strings.TrimSpace(u.GetAnnotations()[policyAnnotation]), policyKeep)
}

// parse returns the objects of a manifest in order.
func parse(manifest string) ([]*object, error) {
	if err := safeyaml.CheckValues([]byte(manifest)); err != nil {
		return nil, fmt.Errorf("reading the manifest: %w", err)
	}
	documents := releaseutil.SplitManifests(manifest)
	keys := slices.Collect(maps.Keys(documents))
	slices.SortFunc(keys, func(a, b string) int {
		if releaseutil.BySplitManifestsOrder([]string{a, b}).Less(0, 1) {
			return -1
		}
		return 1
	})
	var out []*object
	for _, key := range keys {
		found, err := parseDocument(documents[key])
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", source(documents[key]), err)
		}
		out = append(out, found...)
	}
	return out, nil
}

// source names the template of a document.
func source(document string) string {
	for line := range strings.Lines(document) {
		if name, ok := strings.CutPrefix(line, "# Source: "); ok {
			return fmt.Sprintf("%q", strings.TrimSpace(name))
		}
	}
	return "an object"
}

func parseDocument(document string) ([]*object, error) {
	data, err := safeyaml.ToJSON([]byte(document))
	if errors.Is(err, safeyaml.ErrLimits) {
		return nil, err
	}
	if err != nil {
		return nil, errors.New("invalid YAML") // the cause may quote values
	}
	if string(data) == "null" {
		return nil, nil
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(data); err != nil {
		return nil, errors.New("no kind")
	}
	if !u.IsList() {
		if u.GetName() == "" {
			return nil, fmt.Errorf("%s has no name", u.GetKind())
		}
		return []*object{newObject(u)}, nil
	}
	var out []*object
	err = u.EachListItem(func(item runtime.Object) error {
		one, ok := item.(*unstructured.Unstructured)
		if !ok || one.GetName() == "" {
			return fmt.Errorf("object in %s has no name", u.GetKind())
		}
		out = append(out, newObject(one))
		return nil
	})
	return out, err
}

// claim marks an object as part of a release.
func (o *object) claim(owner tool.ID) {
	labels := o.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[managedByLabel] = managedByHelm
	o.SetLabels(labels)
	annotations := o.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[nameAnnotation], annotations[namespaceAnnotation] = owner.Name, owner.Namespace
	o.SetAnnotations(annotations)
}

// ownedBy reports whether an object on the cluster carries the marks of a release.
func ownedBy(live *unstructured.Unstructured, owner tool.ID) bool {
	a := live.GetAnnotations()
	return live.GetLabels()[managedByLabel] == managedByHelm && a[nameAnnotation] == owner.Name && a[namespaceAnnotation] == owner.Namespace
}

// ownedByOther reports whether an object carries the marks of another release.
func ownedByOther(live metav1.Object, owner tool.ID) bool {
	a := live.GetAnnotations()
	name, namespace := a[nameAnnotation], a[namespaceAnnotation]
	return name != "" && (name != owner.Name || namespace != owner.Namespace)
}

// inOrder sorts objects by kind, unknown kinds last.
func inOrder(objects []*object, order releaseutil.KindSortOrder) []*object {
	place := func(o *object) int {
		if i := slices.Index(order, o.GetKind()); i >= 0 {
			return i
		}
		return len(order)
	}
	sorted := slices.Clone(objects)
	slices.SortStableFunc(sorted, func(a, b *object) int {
		if d := place(a) - place(b); d != 0 {
			return d
		}
		return strings.Compare(a.GetKind(), b.GetKind())
	})
	return sorted
}
