package gitops

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"

	"github.com/drover-dev/drover/internal/model/spec"
)

// errOtherCluster means that a location doesn't match the repository.
var errOtherCluster = errors.New("the file has another cluster, or several")

// Write returns the changes that give a cluster its spec. In an existing file, only fields that
// differ change, and defaults that the file leaves out stay out. Objects that the Cluster doesn't
// reference any more are removed.
func Write(fsys fs.FS, loc Location, c *spec.Config) (Changes, error) {
	if c.Cluster == nil || c.Cluster.Name != loc.Cluster {
		return nil, fmt.Errorf("writing cluster %q: the spec is of another cluster", loc.Cluster)
	}
	referenced, err := cloneConfig(c)
	if err != nil {
		return nil, fmt.Errorf("writing cluster %q: %w", loc.Cluster, err)
	}
	t, err := load(fsys, loc.Path)
	if err != nil {
		return nil, err
	}
	if err := loc.check(t.root); err != nil {
		return nil, fmt.Errorf("writing cluster %q: %w", loc.Cluster, err)
	}
	changes := Changes{}
	if _, exists := t.files[loc.File]; exists {
		err = t.update(changes, loc, referenced)
	} else {
		err = t.create(changes, loc, referenced)
	}
	if err == nil {
		err = t.include(changes, loc)
	}
	if err != nil {
		return nil, fmt.Errorf("writing cluster %q to %q: %w", loc.Cluster, loc.File, err)
	}
	return changes, nil
}

// create writes a new file, and a kustomization if there is none.
func (t *tree) create(changes Changes, loc Location, c *spec.Config) error {
	data, err := spec.Marshal(c)
	if err != nil {
		return err
	}
	changes[loc.File] = data
	after := t.apply(changes)
	if after.kustomization(loc.Dir) == "" {
		changes[loc.Dir+"/"+kustomizationFile] = newKustomization(after.manifests(loc.Dir))
	}
	return nil
}

// update changes the files that hold the objects of a cluster. If the changes can't be limited to
// fields that differ, the objects are written with all their fields.
func (t *tree) update(changes Changes, loc Location, c *spec.Config) error {
	found, err := clustersIn(t.files[loc.File])
	if err != nil {
		return err
	}
	if len(found) > 1 || (len(found) == 1 && found[0] != loc.Cluster) {
		return errOtherCluster
	}
	want, err := complete(c)
	if err != nil {
		return err
	}
	have, _ := spec.Read(t.specText(loc))
	for _, base := range []*spec.Config{have, nil} {
		edited := Changes{}
		u, err := newUpdate(loc, c, base)
		if err == nil {
			err = u.files(t, edited)
		}
		if err != nil {
			return err
		}
		if t.apply(edited).holds(loc, want) {
			maps.Copy(changes, edited)
			return nil
		}
	}
	return errors.New("the file would not have the desired spec")
}

// holds reports whether the files of a cluster have a spec.
func (t *tree) holds(loc Location, want []byte) bool {
	config, err := spec.Read(t.specText(loc))
	if err != nil {
		return false
	}
	got, err := complete(config)
	return err == nil && bytes.Equal(got, want)
}

// complete renders a spec with its defaults.
func complete(c *spec.Config) ([]byte, error) {
	copied, err := cloneConfig(c)
	if err != nil {
		return nil, err
	}
	spec.Default(copied)
	return spec.Marshal(copied)
}

// cloneConfig returns a copy with the objects that the Cluster references.
func cloneConfig(c *spec.Config) (*spec.Config, error) {
	data, err := spec.Marshal(c)
	if err != nil {
		return nil, err
	}
	return spec.Read(data)
}
