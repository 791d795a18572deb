package gitops

import (
	"slices"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/model/document"
	"github.com/drover-dev/drover/internal/model/spec"
)

// update is the difference between the spec in a repository and the desired one. Objects are
// rendered with and without defaults.
type update struct {
	loc       Location
	namespace string
	given     []map[string]any
	want      map[document.ID]map[string]any
	have      map[document.ID]map[string]any
}

func newUpdate(loc Location, c, base *spec.Config) (*update, error) {
	u := &update{loc: loc, namespace: c.Cluster.Namespace}
	if u.namespace == "" {
		u.namespace = spec.DefaultNamespace
	}
	data, err := spec.Marshal(c)
	if err != nil {
		return nil, err
	}
	if u.given, err = document.Objects(data); err != nil {
		return nil, err
	}
	if u.want, err = u.defaulted(c); err != nil || base == nil {
		return u, err
	}
	u.have, err = u.defaulted(base)
	return u, err
}

// defaulted returns the objects of a spec with defaults.
func (u *update) defaulted(c *spec.Config) (map[document.ID]map[string]any, error) {
	data, err := complete(c)
	if err != nil {
		return nil, err
	}
	objects, err := document.Objects(data)
	all := map[document.ID]map[string]any{}
	for _, object := range objects {
		all[document.IDOf(object, u.namespace)] = object
	}
	return all, err
}

// files changes each file that has an object of the cluster. New objects are added to the file of
// the Cluster.
func (u *update) files(t *tree, changes Changes) error {
	missing := u.given
	names := t.specFiles(u.loc)
	slices.Reverse(names) // The file of the Cluster comes last.
	for _, name := range names {
		objects, err := document.Objects(t.files[name])
		if err != nil {
			return err
		}
		var desired []map[string]any
		desired, missing = u.desired(objects, missing)
		if name == u.loc.File {
			desired = append(desired, missing...)
		}
		options := document.Options{Namespace: u.namespace}
		if name == u.loc.File || !t.shared(u.loc) {
			options.Remove = u.obsolete
		}
		data, err := document.Apply(t.files[name], desired, options)
		if err != nil {
			return err
		}
		t.set(changes, name, data)
	}
	return nil
}

// desired returns the desired content of objects in a file, and the objects that it doesn't have.
func (u *update) desired(objects, given []map[string]any) (desired, missing []map[string]any) {
	for _, object := range given {
		id := document.IDOf(object, u.namespace)
		i := slices.IndexFunc(objects, func(one map[string]any) bool { return document.IDOf(one, u.namespace) == id })
		switch {
		case i < 0:
			missing = append(missing, object)
		case u.have[id] == nil:
			desired = append(desired, object)
		default:
			merged, _ := merge(objects[i], u.have[id], u.want[id]).(map[string]any)
			desired = append(desired, merged)
		}
	}
	return desired, missing
}

// obsolete reports whether the Cluster referenced an object and doesn't any more.
func (u *update) obsolete(id document.ID) bool {
	return u.have[id] != nil && u.want[id] == nil && id.Kind != anywherev1.ClusterKind
}
