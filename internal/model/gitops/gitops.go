// Package gitops is the layout of a fleet repository: where the spec of a cluster is, which files
// belong to it, and which files change when it is written or removed.
//
//	clusters/mgmt/                              path of the management cluster, which Flux applies
//	├── eksa-system/                            the management cluster itself
//	│   ├── eksa-cluster.yaml
//	│   └── kustomization.yaml
//	└── workload-clusters/dev/                  a workload cluster
//	    ├── eksa-cluster.yaml
//	    ├── kustomization.yaml
//	    ├── addons/                             applied when the cluster exists
//	    └── packages/                           applied after addons
//
// New clusters are written in this form. A cluster that is elsewhere below the path stays there, be
// it in clusters/mgmt/dev/eksa-system/ or in a file that someone wrote by hand.
//
// The package reads an fs.FS and returns the files to change. It never writes files and never talks
// to a Git server. Start with Read, then Write and Remove.
package gitops

import (
	"fmt"
	"io/fs"
	"path"
	"strings"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
)

// Names in the layout of new clusters.
const (
	specFile          = "eksa-cluster.yaml"
	kustomizationFile = "kustomization.yaml"
	workloadClusters  = "workload-clusters"
)

// Changes are the files to write, by path. A file without content (nil) is removed.
type Changes map[string][]byte

// Location is where a cluster is in a repository.
type Location struct {
	// Path is the directory of the management cluster, such as clusters/mgmt.
	Path string
	// Cluster is the name of the cluster.
	Cluster string
	// Dir is the directory of the cluster, and File the file that has the Cluster object.
	Dir, File string
}

// Problem is what prevents a part of a repository from being applied.
type Problem struct {
	File string `json:"file"`
	// Line is 0 if it is not known.
	Line    int    `json:"line,omitempty"`
	Message string `json:"message"`
}

// String returns the problem on one line, as compilers print it.
func (p Problem) String() string {
	if p.Line == 0 {
		return printable(p.File) + ": " + printable(p.Message)
	}
	return fmt.Sprintf("%s:%d: %s", printable(p.File), p.Line, printable(p.Message))
}

// DefaultPath returns the directory of a management cluster.
func DefaultPath(management string) string { return path.Join("clusters", management) }

// Detect returns the location of a cluster, or where it will be created. An empty path stands for
// the default of its management cluster.
func Detect(fsys fs.FS, dir string, c *anywherev1.Cluster) (Location, error) {
	if strings.Contains(c.Name, "/") || path.Clean(c.Name) != c.Name || strings.Trim(c.Name, ".") == "" {
		return Location{}, fmt.Errorf("locating cluster %q: the name can't be that of a directory", c.Name)
	}
	if dir == "" && c.ManagedBy() != "" {
		dir = DefaultPath(c.ManagedBy())
	}
	t, err := load(fsys, dir)
	if err != nil {
		return Location{}, err
	}
	fleet := t.index()
	var found []string
	loc := newLocation(fleet.Path, c)
	for _, one := range fleet.Clusters {
		if one.Location.Cluster == c.Name {
			found, loc = append(found, one.Location.File), one.Location
		}
	}
	if len(found) > 1 {
		return Location{}, fmt.Errorf("locating cluster %q: several files have it: %s", c.Name, strings.Join(found, ", "))
	}
	if len(found) == 0 {
		err = fleet.checkFree(loc)
	}
	return loc, err
}

// newLocation returns where a new cluster is created.
func newLocation(root string, c *anywherev1.Cluster) Location {
	dir := path.Join(root, workloadClusters, c.Name)
	if c.IsSelfManaged() {
		dir = path.Join(root, anywherev1.SystemNamespace)
	}
	return Location{Path: root, Cluster: c.Name, Dir: dir, File: path.Join(dir, specFile)}
}

// check returns an error if a location is not below its path, which is that of a tree.
func (l Location) check(root string) error {
	if l.Path != root || (l.Dir != root && !within(l.Dir, root)) || path.Dir(l.File) != l.Dir || !fs.ValidPath(l.File) {
		return fmt.Errorf("%q is not below %q", l.File, l.Path)
	}
	return nil
}

// checkFree returns an error if the location of a new cluster is in use.
func (f *Fleet) checkFree(loc Location) error {
	for _, one := range f.Clusters {
		if one.Location.Dir == loc.Dir {
			return fmt.Errorf("locating cluster %q: %s has cluster %q already", loc.Cluster, loc.Dir, one.Location.Cluster)
		}
	}
	for _, p := range f.Problems {
		if p.File == loc.File {
			return fmt.Errorf("locating cluster %q: %s", loc.Cluster, p)
		}
	}
	return nil
}

// cleanPath returns a directory in the form of fs.FS. The form "./clusters/mgmt/" is that of Flux.
func cleanPath(dir string) (string, error) {
	cleaned := strings.TrimPrefix(path.Clean("/"+dir), "/")
	if cleaned == "" {
		cleaned = "."
	}
	if strings.Contains("/"+dir+"/", "/../") || !fs.ValidPath(cleaned) {
		return "", fmt.Errorf("path %q is not a directory of the repository", dir)
	}
	return cleaned, nil
}
