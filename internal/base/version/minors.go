package version

import (
	"fmt"
	"slices"
	"strings"
)

// shipped are the Kubernetes releases for clusters, newest first. A test compares them with the
// module files of kube/kubernetes.
var shipped = []string{Kubernetes, "v1.35.4"}

// Shipped returns the Kubernetes releases for clusters, newest first.
func Shipped() []string { return slices.Clone(shipped) }

// Minors returns the Kubernetes minor versions for clusters, such as "1.36", newest first.
func Minors() []string {
	out := make([]string, 0, len(shipped))
	for _, v := range shipped {
		out = append(out, minorOf(v))
	}
	return out
}

// ForMinor returns the release that is shipped for a minor version.
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
