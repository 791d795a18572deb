package install

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/version"
)

// NewerError says that a cluster holds objects of a newer Drover, which an older one must not overwrite.
type NewerError struct {
	// Object is one that is newer.
	Object string
	// Installed and Own are the two versions.
	Installed, Own string
}

func (e *NewerError) Error() string {
	return fmt.Sprintf("%s was installed by Drover %s, which is newer than this %s: use Drover %s or later with this cluster",
		e.Object, e.Installed, e.Own, e.Installed)
}

// newer compares releases. Builds that are no release, and objects that carry no version, are never in the way.
func newer(installed, own string) bool {
	a, err := version.ParseSemantic(installed)
	if err != nil {
		return false
	}
	b, err := version.ParseSemantic(own)
	if err != nil || development(a) || development(b) {
		return false
	}
	return b.LessThan(a)
}

func development(v *version.Version) bool { return v.Major() == 0 && v.Minor() == 0 && v.Patch() == 0 }
