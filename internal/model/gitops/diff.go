package gitops

import (
	"bytes"
	"io/fs"
	"maps"
	"slices"
)

// Action is what happens to a cluster.
type Action string

// Actions of a change.
const (
	Created Action = "created"
	Changed Action = "changed"
	Removed Action = "removed"
	// Unreadable means that the file of the Cluster exists and can't be parsed, so that Flux applies
	// nothing. Validate reports why.
	Unreadable Action = "unreadable"
)

// Limits of a report, which people read in a pull request.
const (
	maxFields = 50
	maxListed = 20
	maxValue  = 80
)

// Report lists the clusters that differ between two states of a repository, by name.
type Report struct {
	Path     string          `json:"path"`
	Clusters []ClusterChange `json:"clusters"`
}

// ClusterChange is how a cluster differs.
type ClusterChange struct {
	Cluster string `json:"cluster"`
	Action  Action `json:"action"`
	File    string `json:"file"`
	// MovedFrom is the file that had the Cluster before, if it was another one.
	MovedFrom string `json:"movedFrom,omitempty"`
	// Fields are the first fields that changed, and MoreFields counts the rest.
	Fields     []FieldChange `json:"fields,omitempty"`
	MoreFields int           `json:"moreFields,omitempty"`
	// Files are the first other files that were added, changed or removed, and MoreFiles counts the
	// rest.
	Files     []string `json:"files,omitempty"`
	MoreFiles int      `json:"moreFiles,omitempty"`
}

// FieldChange is a field with its previous and its new value as JSON. A missing value is empty.
type FieldChange struct {
	Object string `json:"object"`
	Path   string `json:"path"`
	Old    string `json:"old,omitempty"`
	New    string `json:"new,omitempty"`
}

// Diff compares the clusters below a path in two states of a repository. Secrets are left out.
func Diff(before, after fs.FS, dir string) (*Report, error) {
	old, err := load(before, dir)
	if err != nil {
		return nil, err
	}
	current, err := load(after, dir)
	if err != nil {
		return nil, err
	}
	was, is := byName(old.fleet()), byName(current.fleet())
	all := maps.Clone(was)
	maps.Copy(all, is)
	report := &Report{Path: current.root}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		a, existed := was[name]
		b, exists := is[name]
		switch {
		case !existed:
			report.add(ClusterChange{Cluster: name, Action: Created, File: b.Location.File})
		case !exists:
			report.add(ClusterChange{Cluster: name, Action: current.lost(a.Location.File), File: a.Location.File})
		case a.Digest != b.Digest || a.Location != b.Location:
			report.add(compare(old, current, a, b))
		}
	}
	return report, nil
}

func (r *Report) add(c ClusterChange) { r.Clusters = append(r.Clusters, c) }

// lost returns why a cluster is missing that was in a file.
func (t *tree) lost(file string) Action {
	if _, err := clustersIn(t.files[file]); err != nil {
		return Unreadable
	}
	return Removed
}

// byName returns the clusters of a fleet. Validate reports duplicates.
func byName(f *Fleet) map[string]Cluster {
	all := map[string]Cluster{}
	for _, c := range f.Clusters {
		all[c.Location.Cluster] = c
	}
	return all
}

// compare returns how a cluster differs.
func compare(old, current *tree, a, b Cluster) ClusterChange {
	c := ClusterChange{Cluster: b.Location.Cluster, Action: Changed, File: b.Location.File}
	if a.Location.File != b.Location.File {
		c.MovedFrom = a.Location.File
	}
	c.Fields = compareFields(old.fields(a.Location), current.fields(b.Location))
	if more := len(c.Fields) - maxFields; more > 0 {
		c.Fields, c.MoreFields = c.Fields[:maxFields], more
	}
	c.Files = changedFiles(old, current, slices.Concat(a.Files, b.Files))
	described := slices.Concat(old.specFiles(a.Location), current.specFiles(b.Location))
	c.Files = slices.DeleteFunc(c.Files, func(name string) bool { return len(c.Fields) > 0 && slices.Contains(described, name) })
	if more := len(c.Files) - maxListed; more > 0 {
		c.Files, c.MoreFiles = c.Files[:maxListed], more
	}
	return c
}

func changedFiles(old, current *tree, names []string) []string {
	slices.Sort(names)
	return slices.DeleteFunc(slices.Compact(names), func(name string) bool {
		a, existed := old.files[name]
		b, exists := current.files[name]
		return existed == exists && bytes.Equal(a, b)
	})
}
