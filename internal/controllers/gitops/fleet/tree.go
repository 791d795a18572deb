package fleet

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/internal/model/gitops"
)

// tree is what a path of a repository has.
type tree struct {
	// missing reports whether the path doesn't exist.
	missing  bool
	clusters []entry
	// problems are those of files that may have had a cluster.
	problems []gitops.Problem
}

// entry is a cluster in a repository.
type entry struct {
	// key has no namespace if the spec can't be read.
	key client.ObjectKey
	dir string
	// later are the directories to apply when the cluster exists, in this order.
	later       []string
	selfManaged bool
	// files is a digest of the files that the cluster is built from.
	files string
	// problem is why the cluster can't be applied, or "".
	problem string
}

// read returns what a path has. It fails if the files can't be read at all.
func read(fsys fs.FS, dir string) (tree, error) {
	fleet, err := gitops.Read(fsys, dir)
	if err != nil {
		return tree{}, err
	}
	if _, err := fs.Stat(fsys, fleet.Path); errors.Is(err, fs.ErrNotExist) {
		return tree{missing: true}, nil
	}
	t := tree{problems: fleet.Problems}
	for i := range fleet.Clusters {
		e := newEntry(&fleet.Clusters[i])
		if e.files, err = digestOf(fsys, e.dir); err != nil {
			return tree{}, err
		}
		t.clusters = append(t.clusters, e)
	}
	for i := range t.clusters {
		t.clusters[i].problem = t.conflict(fsys, i)
	}
	return t, nil
}

func newEntry(c *gitops.Cluster) entry {
	e := entry{key: client.ObjectKey{Name: c.Location.Cluster}, dir: c.Location.Dir, later: c.Later}
	if c.Config != nil {
		e.key.Namespace, e.selfManaged = c.Config.Cluster.Namespace, c.Config.Cluster.IsSelfManaged()
	}
	// Kustomizations above the directory don't matter, because it is applied on its own.
	own := func(p gitops.Problem) bool { return within(p.File, e.dir) }
	if i := slices.IndexFunc(c.Problems, own); i >= 0 {
		e.problem = c.Problems[i].String()
	}
	return e
}

// conflict returns the problem of a cluster, or that its directory has another one: Flux applies
// whole directories.
func (t *tree) conflict(fsys fs.FS, i int) string {
	e := t.clusters[i]
	for j, other := range t.clusters {
		nested := within(other.dir, e.dir) && other.dir != e.dir && !hasKustomization(fsys, e.dir)
		if e.problem == "" && i != j && (other.dir == e.dir || nested) {
			return fmt.Sprintf("%s: it has cluster %q too; use a directory for each cluster", e.dir, other.key.Name)
		}
	}
	return e.problem
}

// hasKustomization reports whether a directory lists what is applied. Flux applies everything below
// it otherwise.
func hasKustomization(fsys fs.FS, dir string) bool {
	return slices.ContainsFunc(kustomizationNames, func(name string) bool {
		_, err := fs.Stat(fsys, path.Join(dir, name))
		return err == nil
	})
}

// within reports whether a path is a directory or in it.
func within(name, dir string) bool {
	return dir == "." || name == dir || strings.HasPrefix(name, dir+"/")
}

// find returns whether the tree has a cluster that was applied from a directory.
func (t *tree) find(key client.ObjectKey, dir string) presence {
	if t.missing {
		return unknown
	}
	found := absent
	for _, e := range t.clusters {
		switch {
		case e.key == key && e.problem == "":
			return present
		case e.key.Name == key.Name && e.problem != "":
			found = broken
		}
	}
	// A file that can't be parsed may be the spec.
	if slices.ContainsFunc(t.problems, func(p gitops.Problem) bool { return within(p.File, dir) }) {
		found = broken
	}
	return found
}
