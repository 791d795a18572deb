package source

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path"
	"strings"

	"github.com/drover-dev/drover/internal/registry/artifact"
)

// place is a possible location of a bundle.
type place struct {
	// registry is host[:port][/path].
	registry, repository, tag string
	ref                       artifact.Ref
}

// String returns the usual notation of a reference.
func (p place) String() string { return path.Join(p.registry, p.repository) + ":" + p.tag }

// places returns the mirror, if there is one, and the registry.
func (b *Bundles) places(w Wanted) ([]place, error) {
	registry := b.registry(w.Registry)
	if registry == "" || w.Repository == "" || w.Tag == "" {
		return nil, fmt.Errorf("repository source: %w: registry %q, repository %q and tag %q must not be empty",
			artifact.ErrInvalid, registry, w.Repository, w.Tag)
	}
	var out []place
	for _, at := range []string{b.mirror(registry), registry} {
		if at == "" {
			continue
		}
		url, name := split(at, w.Repository)
		out = append(out, place{
			registry: at, repository: w.Repository, tag: w.Tag,
			ref: artifact.Ref{URL: url, Name: name, Version: w.Tag, Access: w.Access[host(at)]},
		})
	}
	return out, nil
}

// registry returns the named registry or the default, without a scheme.
func (b *Bundles) registry(named string) string {
	if named == "" {
		named = b.options.Default
	}
	return bare(named)
}

func bare(registry string) string {
	if _, rest, found := strings.Cut(registry, "://"); found {
		registry = rest
	}
	return strings.Trim(registry, "/")
}

func host(registry string) string {
	name, _, _ := strings.Cut(registry, "/")
	return name
}

// mirror is what stands for a registry, empty if nothing does. A mirror has none itself.
func (b *Bundles) mirror(registry string) string {
	name, rest, _ := strings.Cut(registry, "/")
	to, ok := b.options.Mirrors[name]
	if !ok {
		to = b.options.Mirrors["*"]
	}
	to = bare(to)
	if to == "" || host(to) == name {
		return ""
	}
	return path.Join(to, rest)
}

func split(registry, repository string) (url, name string) {
	dir, name := path.Split(path.Join(registry, repository))
	return "oci://" + strings.TrimSuffix(dir, "/"), name
}

// ChartPlace returns the location of the charts of a repository for a HelmReleaseProxy. It ignores
// mirrors, because charts are pulled by digest and the chart store tries mirrors first.
func (b *Bundles) ChartPlace(registry, repository string) (repoURL, chartName string) {
	return split(b.registry(registry), repository)
}

// Host returns the hosts that may require credentials: those of the registry, or of the default if
// it is empty, and of its mirror.
func (b *Bundles) Host(registry string) (own, mirror string) {
	registry = b.registry(registry)
	return host(registry), host(b.mirror(registry))
}

// key identifies a request and its credentials, so that callers share only what they may access.
func (w Wanted) key(places []place) string {
	var parts []string
	for _, p := range places {
		parts = append(parts, p.String(), p.accessKey())
	}
	return digestOf(parts)
}

// accessKey identifies a repository and the credentials for it.
func (p place) accessKey() string {
	a := p.ref.Access
	return digestOf([]string{
		path.Join(p.registry, p.repository), a.Username, a.Password, string(a.DockerConfig), string(a.CA), fmt.Sprint(a.SkipTLSVerify),
	})
}

func digestOf(parts []string) string {
	sum := sha256.New()
	for _, part := range parts {
		fmt.Fprintf(sum, "%d:%s", len(part), part)
	}
	return hex.EncodeToString(sum.Sum(nil))
}
