package bundle

import (
	"strings"

	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
)

// CycleError is returned for a dependency cycle.
type CycleError struct {
	// Packages is the cycle; the last package is the first one again.
	Packages []string
}

func (e *CycleError) Error() string {
	return "dependency cycle: " + strings.Join(e.Packages, " -> ")
}

// Dependencies returns the transitive dependencies of a package in the order of installation. A
// dependency is always on the latest version. The error is a *CycleError, a *NotInBundleError or a
// *NoVersionError.
func Dependencies(b *packagesv1.PackageBundle, found Found) ([]string, error) {
	w := &walk{bundle: b, done: map[string]bool{}}
	if err := w.visit(found); err != nil {
		return nil, err
	}
	return w.order[:len(w.order)-1], nil // without the package itself, which is last
}

type walk struct {
	bundle *packagesv1.PackageBundle
	path   []string
	done   map[string]bool
	order  []string
}

func (w *walk) visit(found Found) error {
	name := found.Package.Name
	for i, above := range w.path {
		if above == name {
			return &CycleError{Packages: append(append([]string{}, w.path[i:]...), name)}
		}
	}
	if w.done[name] {
		return nil
	}
	w.path = append(w.path, name)
	for _, needed := range found.Version.Dependencies {
		next, err := Find(w.bundle, needed, "")
		if err != nil {
			return err
		}
		if err := w.visit(next); err != nil {
			return err
		}
	}
	w.path = w.path[:len(w.path)-1]
	w.done[name] = true
	w.order = append(w.order, name)
	return nil
}
