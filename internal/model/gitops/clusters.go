package gitops

import (
	"bytes"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/model/document"
	"github.com/drover-dev/drover/internal/model/spec"
)

// Fleet is the clusters below a path.
type Fleet struct {
	Path     string
	Clusters []Cluster
	// Problems are those that don't concern a single cluster.
	Problems []Problem
}

// Cluster is a cluster in a repository.
type Cluster struct {
	Location Location
	// Config is the spec with its defaults. It is nil if the spec has problems.
	Config *spec.Config
	// Files are the files that belong to the cluster, sorted. Digest changes when one of them does.
	Files  []string
	Digest string
	// Later are the directories that are applied when the cluster exists, in this order.
	Later []string
	// Problems concern its spec and whether Flux applies it.
	Problems []Problem
}

// Read returns the clusters below a path, sorted by name. A problem of one of them doesn't hide the
// others. A path that doesn't exist has no clusters.
func Read(fsys fs.FS, dir string) (*Fleet, error) {
	t, err := load(fsys, dir)
	if err != nil {
		return nil, err
	}
	return t.fleet(), nil
}

// fleet returns the clusters with their specs and files.
func (t *tree) fleet() *Fleet {
	f := t.index()
	for i := range f.Clusters {
		t.complete(&f.Clusters[i], f)
	}
	f.markDuplicates()
	return f
}

// index returns the locations of the clusters.
func (t *tree) index() *Fleet {
	f := &Fleet{Path: t.root}
	for _, name := range t.other {
		f.Problems = append(f.Problems, Problem{File: name, Message: "it is not a regular file, and is ignored"})
	}
	for _, name := range t.names {
		if isManifest(name) {
			f.addFile(t, name)
		}
	}
	slices.SortStableFunc(f.Clusters, func(a, b Cluster) int { return strings.Compare(a.Location.Cluster, b.Location.Cluster) })
	return f
}

// addFile adds the clusters of a file.
func (f *Fleet) addFile(t *tree, name string) {
	names, err := clustersIn(t.files[name])
	if err != nil {
		f.Problems = append(f.Problems, Problem{File: name, Message: err.Error()})
		return
	}
	for _, cluster := range names {
		f.Clusters = append(f.Clusters, Cluster{Location: Location{Path: t.root, Cluster: cluster, Dir: path.Dir(name), File: name}})
	}
}

// clustersIn returns the names of the Clusters in a file. Files without the API group are not
// parsed, because they may be templates or have any size.
func clustersIn(data []byte) ([]string, error) {
	if !bytes.Contains(data, []byte(anywherev1.GroupVersion.Group)) {
		return nil, nil
	}
	objects, err := document.Objects(data)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, object := range flatten(objects) {
		id := document.IDOf(object, "")
		if id.Group == anywherev1.GroupVersion.Group && id.Kind == anywherev1.ClusterKind {
			names = append(names, id.Name)
		}
	}
	return names, nil
}

// flatten replaces each List by its items.
func flatten(objects []map[string]any) []map[string]any {
	var all []map[string]any
	for _, object := range objects {
		items, _ := object["items"].([]any)
		if object["kind"] != "List" {
			all = append(all, object)
		}
		for _, item := range items {
			if content, ok := item.(map[string]any); ok && object["kind"] == "List" {
				all = append(all, content)
			}
		}
	}
	return all
}

// markDuplicates adds a problem to clusters of the same name.
func (f *Fleet) markDuplicates() {
	for i := 1; i < len(f.Clusters); i++ {
		a, b := &f.Clusters[i-1], &f.Clusters[i]
		if a.Location.Cluster == b.Location.Cluster {
			message := fmt.Sprintf("cluster %q is in %s too: remove one of them", a.Location.Cluster, a.Location.File)
			b.Problems = append(b.Problems, Problem{File: b.Location.File, Message: message})
		}
	}
}

// complete reads the spec of a cluster and determines its files.
func (t *tree) complete(c *Cluster, f *Fleet) {
	c.Files = t.members(c.Location, f)
	c.Digest = t.digest(c.Files)
	c.Later = t.later(c.Location.Dir)
	config, problems := spec.Check(t.specText(c.Location))
	for _, p := range problems {
		c.Problems = append(c.Problems, t.locate(c.Location, p))
	}
	if len(problems) == 0 {
		c.Config = config
	}
	c.Problems = append(c.Problems, t.numericVersions(c.Location)...)
	c.Problems = append(c.Problems, t.checkApplied(c.Location)...)
}

// specFiles returns the files that can hold the objects of a cluster: the one with the Cluster, and
// others in its directory that have no Cluster.
func (t *tree) specFiles(loc Location) []string {
	all := []string{loc.File}
	for _, name := range t.manifests(loc.Dir) {
		clusters, err := clustersIn(t.files[name])
		relevant := bytes.Contains(t.files[name], []byte(anywherev1.GroupVersion.Group))
		if name != loc.File && relevant && err == nil && len(clusters) == 0 {
			all = append(all, name)
		}
	}
	return all
}

// shared reports whether another cluster has its file in the directory of a cluster, and may
// reference the same objects.
func (t *tree) shared(loc Location) bool {
	return slices.ContainsFunc(t.manifests(loc.Dir), func(name string) bool {
		clusters, err := clustersIn(t.files[name])
		return name != loc.File && (err != nil || len(clusters) > 0)
	})
}

// specText returns the objects of a cluster as one file.
func (t *tree) specText(loc Location) []byte {
	var parts [][]byte
	for _, name := range t.specFiles(loc) {
		parts = append(parts, t.files[name])
	}
	return bytes.Join(parts, []byte("\n---\n"))
}
