package gitops

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/model/document"
)

// Live returns an object of a management plane, or nil if it doesn't exist. The namespace is empty
// if the file names none.
type Live func(id document.ID) (map[string]any, error)

// Drift compares the clusters below a path with the objects of a management plane: a field has the
// live value as the old one, and that of the file as the new one, as if the commit were not applied
// yet. Only the objects of specs are compared, and no fields that a file leaves to their defaults.
// The action is Created if the plane doesn't have the Cluster.
//
// Clusters that are in several files are left out, as are those for which wanted returns false.
func Drift(fsys fs.FS, dir string, wanted func(cluster string) bool, live Live) (*Report, error) {
	t, err := load(fsys, dir)
	if err != nil {
		return nil, err
	}
	index, files := t.index(), map[string]int{}
	for _, c := range index.Clusters {
		files[c.Location.Cluster]++
	}
	report := &Report{Path: t.root}
	for _, c := range index.Clusters {
		if name := c.Location.Cluster; files[name] > 1 || !wanted(name) {
			continue
		}
		change, err := t.drift(c.Location, live)
		if err != nil {
			return nil, err
		}
		report.add(change)
	}
	return report, nil
}

// drift compares one cluster. The change has no fields if nothing differs.
func (t *tree) drift(loc Location, live Live) (ClusterChange, error) {
	c := ClusterChange{Cluster: loc.Cluster, Action: Changed, File: loc.File}
	objects, err := t.specObjects(loc)
	if err != nil {
		c.Action = Unreadable
		return c, nil //nolint:nilerr // Check reports it.
	}
	var d drift
	for _, object := range objects {
		id := document.IDOf(object, "")
		is, err := live(id)
		if err != nil {
			return c, fmt.Errorf("reading %s: %w", id, err)
		}
		if is == nil && id.Kind == anywherev1.ClusterKind && id.Name == loc.Cluster {
			c.Action = Created
			return c, nil
		}
		d.object(id.Kind+"/"+id.Name, object, is)
	}
	slices.SortFunc(d.fields, func(a, b FieldChange) int {
		return strings.Compare(a.Object+" "+a.Path, b.Object+" "+b.Path)
	})
	c.Fields = d.fields
	if more := len(c.Fields) - maxFields; more > 0 {
		c.Fields, c.MoreFields = c.Fields[:maxFields], more
	}
	return c, nil
}

// specObjects returns the objects of the API of specs in the files of a cluster.
func (t *tree) specObjects(loc Location) ([]map[string]any, error) {
	var all []map[string]any
	for _, name := range t.specFiles(loc) {
		objects, err := document.Objects(t.files[name])
		if err != nil {
			return nil, err
		}
		all = append(all, flatten(objects)...)
	}
	return slices.DeleteFunc(all, func(object map[string]any) bool {
		return document.IDOf(object, "").Group != anywherev1.GroupVersion.Group
	}), nil
}

// drift collects the fields that differ.
type drift struct{ fields []FieldChange }

// object compares what people specify: labels, annotations and the spec.
func (d *drift) object(name string, want, is map[string]any) {
	if is == nil {
		d.fields = append(d.fields, FieldChange{Object: name, New: "exists"})
		return
	}
	for _, path := range [][]string{{"metadata", "labels"}, {"metadata", "annotations"}, {"spec"}} {
		d.compare(field{name, strings.Join(path, ".")}, at(want, path), at(is, path))
	}
}

// at returns the value at a path, or nil.
func at(object map[string]any, path []string) any {
	var value any = object
	for _, key := range path {
		parent, _ := value.(map[string]any)
		value = parent[key]
	}
	return value
}

func (d *drift) compare(at field, want, is any) {
	switch content := want.(type) {
	case nil: // The file leaves it to the plane.
	case map[string]any:
		other, _ := is.(map[string]any)
		for key, child := range content {
			d.compare(field{at.object, at.path + "." + key}, child, other[key])
		}
	case []any:
		other, _ := is.([]any)
		d.list(at, content, other)
	default:
		if !sameValue(want, is) {
			d.add(at, want, is)
		}
	}
}

// list compares items by name or index. Others than those in the file are not defaults.
func (d *drift) list(at field, want, is []any) {
	wanted, others := itemsByID(want), itemsByID(is)
	for id, item := range wanted {
		d.compare(field{at.object, at.path + "[" + id + "]"}, item, others[id])
	}
	for id, item := range others {
		if _, known := wanted[id]; !known {
			d.add(field{at.object, at.path + "[" + id + "]"}, nil, item)
		}
	}
}

func itemsByID(list []any) map[string]any {
	all := make(map[string]any, len(list))
	for i, item := range list {
		id := nameOf(item)
		if id == "" || indexOfName(list, id) != i {
			id = strconv.Itoa(i)
		}
		all[id] = item
	}
	return all
}

func (d *drift) add(at field, want, is any) {
	d.fields = append(d.fields, FieldChange{at.object, at.path, display(at.path, asJSON(is)), display(at.path, asJSON(want))})
}

// asJSON returns "" for a missing value.
func asJSON(value any) string {
	data, err := json.Marshal(value)
	if value == nil || err != nil {
		return ""
	}
	return string(data)
}

// sameValue reports whether a live value is the one of a file: the API server drops zero values,
// and writes durations and quantities in its own way.
func sameValue(want, is any) bool {
	if is == nil {
		return reflect.ValueOf(want).IsZero()
	}
	if asJSON(want) == asJSON(is) {
		return true
	}
	a, b := fmt.Sprint(want), fmt.Sprint(is)
	if x, err := time.ParseDuration(a); err == nil {
		y, err := time.ParseDuration(b)
		return err == nil && x == y
	}
	if !hasUnit(a) && !hasUnit(b) {
		return false // Versions look like numbers.
	}
	x, err := resource.ParseQuantity(a)
	if err != nil {
		return false
	}
	y, err := resource.ParseQuantity(b)
	return err == nil && x.Cmp(y) == 0
}

// hasUnit reports whether a quantity ends in a unit.
func hasUnit(quantity string) bool {
	return quantity != "" && !strings.ContainsAny(quantity[len(quantity)-1:], "0123456789.")
}
