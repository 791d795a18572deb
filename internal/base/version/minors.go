package version

import (
	"fmt"
	"slices"
	"strings"
)

// shipped are the releases of Kubernetes that clusters can have, the newest first. A test holds
// them equal to what the module files of kube/kubernetes pin.
var shipped = []string{Kubernetes, "v1.35.4"}

// Shipped lists the releases of Kubernetes that clusters can have, the newest first.
func Shipped() []string { return slices.Clone(shipped) }

// Minors are the minor versions of Kubernetes that clusters can have, such as "1.36", the newest
// first.
func Minors() []string {
	out := make([]string, 0, len(shipped))
	for _, v := range shipped {
		out = append(out, minorOf(v))
	}
	return out
}

// ForMinor is the release that is shipped for a minor version.
func ForMinor(minor string) (string, error) {
	for _, v := range shipped {
		if minorOf(v) == minor {
			return v, nil
		}
	}
	return "", fmt.Errorf("unsupported Kubernetes version %s: use one of %s", minor, strings.Join(Minors(), ", "))
}

func minorOf(v string) string {
	parts := strings.SplitN(strings.TrimPrefix(v, "v"), ".", 3)
	return strings.Join(parts[:2], ".")
}
