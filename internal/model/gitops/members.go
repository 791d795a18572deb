package gitops

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path"
	"slices"
)

// laterDirs are the directories of a cluster that are applied when it exists, in this order.
func laterDirs() []string { return []string{"addons", "packages"} }

// members returns the files that belong to a cluster alone: everything in its directory, unless the
// directory is that of other clusters too.
func (t *tree) members(loc Location, f *Fleet) []string {
	shared, nested := loc.Dir == loc.Path, false
	for _, other := range f.Clusters {
		shared = shared || (other.Location.Dir == loc.Dir && other.Location.File != loc.File)
		nested = nested || within(other.Location.Dir, loc.Dir)
	}
	return filter(t.below(loc.Dir), func(name string) bool {
		switch {
		case name == loc.File:
			return true
		case shared:
			return false
		case nested:
			return beside(loc, name) && !f.ofAnother(loc, name)
		}
		return true
	})
}

// beside reports whether a file is a manifest in the directory of a cluster, or is applied later.
func beside(loc Location, name string) bool {
	if path.Dir(name) == loc.Dir {
		return isManifest(name)
	}
	return slices.ContainsFunc(laterDirs(), func(dir string) bool { return within(name, path.Join(loc.Dir, dir)) })
}

// ofAnother reports whether a file is in the directory of a cluster within that of another one.
func (f *Fleet) ofAnother(loc Location, name string) bool {
	return slices.ContainsFunc(f.Clusters, func(other Cluster) bool {
		return within(other.Location.Dir, loc.Dir) && within(name, other.Location.Dir)
	})
}

// later returns the directories of a cluster that are applied when it exists.
func (t *tree) later(dir string) []string {
	var all []string
	for _, name := range laterDirs() {
		later := path.Join(dir, name)
		if len(t.below(later)) > 0 {
			all = append(all, later)
		}
	}
	return all
}

// digest returns a digest of the paths and contents of files.
func (t *tree) digest(names []string) string {
	sum := sha256.New()
	for _, name := range names {
		fmt.Fprintf(sum, "%q %d\n", name, len(t.files[name]))
		sum.Write(t.files[name])
	}
	return "sha256:" + hex.EncodeToString(sum.Sum(nil))
}
