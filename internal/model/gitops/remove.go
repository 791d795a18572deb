package gitops

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
)

// Remove returns the changes that remove a cluster: its files, and its place in the kustomizations
// around it. It never removes files of other clusters or of the path itself. It returns no changes
// if the cluster isn't there.
func Remove(fsys fs.FS, loc Location) (Changes, error) {
	t, err := load(fsys, loc.Path)
	if err != nil {
		return nil, err
	}
	f := t.index()
	found, err := f.contains(loc)
	if err != nil {
		return nil, fmt.Errorf("removing cluster %q: %w", loc.Cluster, err)
	}
	changes := Changes{}
	if !found {
		return changes, nil
	}
	for _, name := range t.members(loc, f) {
		changes[name] = nil
	}
	if err := t.exclude(changes); err != nil {
		return nil, fmt.Errorf("removing cluster %q: %w", loc.Cluster, err)
	}
	if len(t.apply(changes).files) == 0 {
		changes[path.Join(loc.Path, kustomizationFile)] = []byte(emptyKustomization)
	}
	return changes, nil
}

// contains reports whether a cluster is at its location, and nothing else is.
func (f *Fleet) contains(loc Location) (bool, error) {
	if err := loc.check(f.Path); err != nil {
		return false, err
	}
	inFile := func(c Cluster) bool { return c.Location.File == loc.File }
	i := slices.IndexFunc(f.Clusters, inFile)
	if i < 0 {
		return false, f.checkFree(loc)
	}
	if slices.ContainsFunc(f.Clusters[i+1:], inFile) || f.Clusters[i].Location.Cluster != loc.Cluster {
		return false, fmt.Errorf("%s: %w", loc.File, errOtherCluster)
	}
	return true, nil
}
