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
	f := t.fleet()
	if err := f.checkRemove(t, loc); err != nil {
		return nil, fmt.Errorf("removing cluster %q: %w", loc.Cluster, err)
	}
	changes := Changes{}
	for _, name := range t.members(loc, f) {
		changes[name] = nil
	}
	if len(changes) == 0 {
		return changes, nil
	}
	if err := t.exclude(changes); err != nil {
		return nil, fmt.Errorf("removing cluster %q: %w", loc.Cluster, err)
	}
	if len(t.apply(changes).files) == 0 {
		changes[path.Join(loc.Path, kustomizationFile)] = []byte(emptyKustomization)
	}
	return changes, nil
}

// checkRemove rejects a location with another cluster, and one outside of the path.
func (f *Fleet) checkRemove(t *tree, loc Location) error {
	if loc.Path != t.root || (loc.Dir != loc.Path && !within(loc.Dir, loc.Path)) || path.Dir(loc.File) != loc.Dir {
		return fmt.Errorf("%q is not below %q", loc.File, loc.Path)
	}
	inFile := func(c Cluster) bool { return c.Location.File == loc.File }
	i := slices.IndexFunc(f.Clusters, inFile)
	if i < 0 {
		return f.checkFree(loc)
	}
	if slices.ContainsFunc(f.Clusters[i+1:], inFile) || f.Clusters[i].Location.Cluster != loc.Cluster {
		return fmt.Errorf("%s: %w", loc.File, errOtherCluster)
	}
	return nil
}
