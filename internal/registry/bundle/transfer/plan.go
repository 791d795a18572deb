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

// item is an artifact: its manifests and the blobs that they refer to.
type item struct {
	from, to Ref
	// manifests lists the manifests of an index before the index itself.
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

// plan reads the manifests of all items from the source. It reports all missing items at once.
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

// MissingError lists the artifacts of a bundle that a source doesn't have.
type MissingError struct {
	Source string
	What   []string
}

func (e *MissingError) Error() string {
	return fmt.Sprintf("%d artifacts of the bundle not found in %s; nothing was written:\n  %s", len(e.What), e.Source, strings.Join(e.What, "\n  "))
}

// load reads a manifest and, if it is an index, the manifests in it.
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
				return fmt.Errorf("reading manifest %s of %s: %w", child.Digest, ref, err)
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

// complete verifies that an archive contains the blobs of an item. A registry rejects manifests
// with missing blobs, so there is nothing to check.
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

// add adds blobs, except duplicates and those that must not be distributed.
func (i *item) add(blobs []v1.Descriptor) {
	for _, b := range blobs {
		known := slices.ContainsFunc(i.blobs, func(other v1.Descriptor) bool { return other.Digest == b.Digest })
		if !known && b.MediaType.IsDistributable() {
			i.blobs = append(i.blobs, v1.Descriptor{MediaType: b.MediaType, Digest: b.Digest, Size: b.Size})
		}
	}
}

// refs returns the charts and images of a bundle without duplicates.
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

// chart returns the chart of a version, unless it is skipped.
func (c *Copier) chart(source packagesv1.BundlePackageSource, v packagesv1.SourceVersion) []*item {
	if c.SkipCharts || c.KeepRegistries && source.Registry != "" {
		return nil
	}
	to := Ref{Kind: KindChart, Repository: source.Repository, Digest: v.Digest, Tag: v.Name}
	from := to
	from.Registry = source.Registry
	return []*item{{from: from, to: to}}
}

// images returns the images of a version, unless they are skipped.
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

// splitHost splits off a first component that is a host, by Docker's rules.
func splitHost(repository string) (registry, rest string) {
	first, rest, found := strings.Cut(repository, "/")
	if found && (strings.ContainsAny(first, ".:") || first == "localhost") {
		return first, rest
	}
	return "", repository
}
