package transfer

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"golang.org/x/sync/errgroup"

	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
)

// item is something with a manifest, and all that this refers to.
type item struct {
	from, to Ref
	// manifests has those inside an index before the index itself.
	manifests []Manifest
	blobs     []v1.Descriptor
}

func (i *item) root() Manifest { return i.manifests[len(i.manifests)-1] }

func (i *item) size() int64 {
	size := int64(0)
	for _, m := range i.manifests {
		size += int64(len(m.Content))
	}
	for _, b := range i.blobs {
		size += b.Size
	}
	return size
}

// plan asks the source for the manifests of everything that is wanted. What is not there is all told at once, before anything is written.
func (c *Copier) plan(ctx context.Context, refs []*item) error {
	missing := make([]error, len(refs))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallel)
	for i, it := range refs {
		group.Go(func() error {
			err := c.load(ctx, it, it.from)
			if errors.Is(err, ErrNotFound) {
				missing[i] = fmt.Errorf("%s %s", it.from.Kind, it.from)
				return nil
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	if err := errors.Join(missing...); err != nil {
		return &MissingError{Source: c.From.String(), What: strings.Split(err.Error(), "\n")}
	}
	return nil
}

// MissingError says what a bundle names and a source does not have.
type MissingError struct {
	Source string
	What   []string
}

func (e *MissingError) Error() string {
	return fmt.Sprintf("%d of what the bundle names are not in %s, and nothing was written:\n  %s", len(e.What), e.Source, strings.Join(e.What, "\n  "))
}

// load gets a manifest and those inside it.
func (c *Copier) load(ctx context.Context, it *item, ref Ref) error {
	m, err := c.From.Manifest(ctx, ref)
	if err != nil {
		return err
	}
	if m.MediaType.IsIndex() {
		index, err := v1.ParseIndexManifest(bytes.NewReader(m.Content))
		if err != nil {
			return fmt.Errorf("reading the index of %s: %w", ref, err)
		}
		for _, child := range index.Manifests {
			inside := Ref{Registry: ref.Registry, Repository: ref.Repository, Digest: child.Digest.String()}
			if err := c.load(ctx, it, inside); err != nil {
				return fmt.Errorf("what %s refers to: %w", ref, err)
			}
		}
	} else {
		parsed, err := v1.ParseManifest(bytes.NewReader(m.Content))
		if err != nil {
			return fmt.Errorf("reading the manifest of %s: %w", ref, err)
		}
		it.add(append([]v1.Descriptor{parsed.Config}, parsed.Layers...))
		if err := c.complete(it, ref); err != nil {
			return err
		}
	}
	it.manifests = append(it.manifests, m)
	return nil
}

// complete tells whether an archive has what a manifest refers to. A registry does not take a manifest without that.
func (c *Copier) complete(it *item, ref Ref) error {
	archive, ok := c.From.(*Archive)
	if !ok {
		return nil
	}
	for _, d := range it.blobs {
		if _, found := archive.blobs[d.Digest.Hex]; !found {
			return fmt.Errorf("%s of %s: %w", d.Digest, ref, ErrNotFound)
		}
	}
	return nil
}

// add leaves out what must not be copied, and what is there already.
func (i *item) add(blobs []v1.Descriptor) {
	for _, b := range blobs {
		known := slices.ContainsFunc(i.blobs, func(other v1.Descriptor) bool { return other.Digest == b.Digest })
		if !known && b.MediaType.IsDistributable() {
			i.blobs = append(i.blobs, v1.Descriptor{MediaType: b.MediaType, Digest: b.Digest, Size: b.Size})
		}
	}
}

// refs are the charts and images of a bundle, each once.
func (c *Copier) refs(b *packagesv1.PackageBundle) []*item {
	var out []*item
	seen := map[Ref]bool{}
	for _, p := range b.Spec.Packages {
		for _, v := range p.Source.Versions {
			for _, it := range append(c.chart(p.Source, v), c.images(v)...) {
				if !seen[it.to] {
					seen[it.to] = true
					out = append(out, it)
				}
			}
		}
	}
	return out
}

// chart is that of a version, if it is to be copied.
func (c *Copier) chart(source packagesv1.BundlePackageSource, v packagesv1.SourceVersion) []*item {
	if c.SkipCharts || c.AsItIs && source.Registry != "" {
		return nil
	}
	to := Ref{Kind: KindChart, Repository: source.Repository, Digest: v.Digest, Tag: v.Name}
	from := to
	from.Registry = source.Registry
	return []*item{{from: from, to: to}}
}

// images are those of a version, if they are to be copied.
func (c *Copier) images(v packagesv1.SourceVersion) []*item {
	if c.SkipImages {
		return nil
	}
	var out []*item
	for _, image := range v.Images {
		registry, repository := splitHost(image.Repository)
		to := Ref{Kind: KindImage, Repository: repository, Digest: image.Digest}
		from := to
		from.Registry = cmp.Or(registry, c.ImageRegistry)
		out = append(out, &item{from: from, to: to})
	}
	return out
}

// splitHost tells whether the first part of a repository is a host, as docker does.
func splitHost(repository string) (registry, rest string) {
	first, rest, found := strings.Cut(repository, "/")
	if found && (strings.ContainsAny(first, ".:") || first == "localhost") {
		return first, rest
	}
	return "", repository
}
