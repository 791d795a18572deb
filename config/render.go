package config

import (
	"bytes"
	"fmt"
)

// Render returns provider-components.yaml: everything that runs the manager in a cluster, with its
// image. Objects come after those they refer to.
func Render(image string) []byte {
	manifests := []Manifest{NamespaceManifest()}
	for _, part := range [][]Manifest{CRDs(), RBAC(), Manager(), Webhooks()} {
		manifests = append(manifests, part...)
	}
	var out bytes.Buffer
	for _, m := range manifests {
		fmt.Fprintf(&out, "---\n%s", bytes.ReplaceAll(m.Data, []byte(ImagePlaceholder), []byte(image)))
	}
	return out.Bytes()
}
