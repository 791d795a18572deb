package install

import "fmt"

// NewerError means that a cluster has objects of a newer Drover, which an older one must not
// overwrite.
type NewerError struct {
	// Object is a newer object.
	Object string
	// Installed and Own are the two versions.
	Installed, Own string
}

func (e *NewerError) Error() string {
	return fmt.Sprintf("%s was installed by Drover %s, which is newer than this %s: use Drover %s or later with this cluster",
		e.Object, e.Installed, e.Own, e.Installed)
}
