package transfer

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/registry/bundle"
)

// parallel is the number of concurrent requests.
const parallel = 4

// Copier copies bundles from a source to a target.
type Copier struct {
	From Source
	To   Target
	// Repository is the repository of bundles at the target.
	Repository string
	// ImageRegistry is the registry of images that don't name one. The default is the registry of
	// the charts.
	ImageRegistry          string
	SkipCharts, SkipImages bool
	// KeepRegistries keeps the registries in the bundle unchanged, and skips the charts in them.
	KeepRegistries bool
	// DryRun computes what would be sent.
	DryRun bool
	// Report is called after each artifact. It may be nil.
	Report func(Sent)
}

// Sent is the result for one artifact.
type Sent struct {
	Kind      string `json:"kind"`
	Reference string `json:"reference"`
	Digest    string `json:"digest"`
	// Bytes is the size of the artifact, SentBytes the part that the target didn't have.
	Bytes     int64 `json:"bytes"`
	SentBytes int64 `json:"sentBytes"`
}

// Copied is the result of a copy or of a dry run.
type Copied struct {
	Bundle string `json:"bundle"`
	From   string `json:"from"`
	To     string `json:"to"`
	DryRun bool   `json:"dryRun,omitempty"`
	Items  []Sent `json:"items"`
	// Tags are the tags of the bundle at the target.
	Tags []string `json:"tags"`
	// Latest is the newer bundle that keeps the tag of the latest bundle, if there is one.
	Latest    string `json:"latest,omitempty"`
	Bytes     int64  `json:"bytes"`
	SentBytes int64  `json:"sentBytes"`
}

// Copy copies a bundle with its charts and images. If the source lacks some of them, it writes
// nothing and returns a *MissingError.
func (c *Copier) Copy(ctx context.Context, b *Fetched) (*Copied, error) {
	name, err := bundle.ParseName(b.Name)
	if err != nil {
		return nil, err
	}
	items := c.refs(b.PackageBundle)
	if err := c.plan(ctx, items); err != nil {
		return nil, fmt.Errorf("reading the charts and images of bundle %s: %w", b.Name, err)
	}
	result := &Copied{Bundle: b.Name, From: c.From.String(), To: c.To.String(), DryRun: c.DryRun, Items: []Sent{}}
	if err := c.sendAll(ctx, items, result); err != nil {
		return result, err
	}
	it, source, err := c.bundleItem(ctx, b)
	if err != nil {
		return result, err
	}
	tags, err := c.tags(ctx, name, result)
	if err != nil {
		return result, err
	}
	for _, tag := range tags {
		it.to.Tag = tag
		sent, err := (&sender{Copier: c, from: source}).send(ctx, it)
		if err != nil {
			return result, fmt.Errorf("copying bundle %s: %w", b.Name, err)
		}
		if len(result.Tags) == 0 {
			c.record(result, sent)
		}
		result.Tags = append(result.Tags, tag)
	}
	return result, nil
}

// bundleItem plans the copy of the bundle itself, unchanged or without registries.
func (c *Copier) bundleItem(ctx context.Context, b *Fetched) (*item, Source, error) {
	it := &item{from: b.Ref, to: Ref{Kind: KindBundle, Repository: c.Repository}}
	local, changed, err := withoutRegistries(b.PackageBundle)
	if err != nil {
		return nil, nil, err
	}
	if !changed || c.KeepRegistries {
		it.to.Digest = b.Ref.Digest
		return it, c.From, c.load(ctx, it, b.Ref)
	}
	a, err := newBundleArtifact(local)
	if err != nil {
		return nil, nil, err
	}
	made := NewMemory()
	made.addBundle(b.Ref, a)
	it.from = Ref{Kind: KindBundle, Repository: c.Repository, Digest: a.manifest.Digest.String()}
	it.to.Digest = it.from.Digest
	return it, made, (&Copier{From: made}).load(ctx, it, it.from)
}

// withoutRegistries removes the registries from a bundle, so that clusters pull its charts from the
// registry of the bundle. It reports false, and returns the bundle unchanged, if there is nothing
// to remove or the signature covers the registries.
func withoutRegistries(b *packagesv1.PackageBundle) (*packagesv1.PackageBundle, bool, error) {
	local := b.DeepCopy()
	changed := false
	for i := range local.Spec.Packages {
		source := &local.Spec.Packages[i].Source
		changed = changed || source.Registry != ""
		source.Registry = ""
	}
	if !changed {
		return b, false, nil
	}
	before, err := bundle.Canonical(b)
	if err != nil {
		return nil, false, err
	}
	after, err := bundle.Canonical(local)
	if err != nil {
		return nil, false, err
	}
	if b.Annotations[packagesv1.SignatureAnnotation] != "" && !bytes.Equal(before, after) {
		return b, false, nil
	}
	return local, true, nil
}

// tags returns the tags to set: the name of the bundle, and the tag of the latest bundle unless a
// newer bundle has it.
func (c *Copier) tags(ctx context.Context, name bundle.Name, result *Copied) ([]string, error) {
	there, ok := c.To.(*Registry)
	if !ok {
		return []string{name.String()}, nil
	}
	current, err := Fetch(ctx, there, Ref{Repository: c.Repository, Tag: name.LatestTag()})
	switch {
	case errors.Is(err, ErrNotFound):
	case err != nil:
		return nil, fmt.Errorf("reading the latest bundle in %s: %w", there, err)
	default:
		if newest, err := bundle.ParseName(current.Name); err == nil && newest.Compare(name) > 0 {
			result.Latest = current.Name
			return []string{name.String()}, nil
		}
	}
	return []string{name.String(), name.LatestTag()}, nil
}

func (c *Copier) record(result *Copied, sent Sent) {
	result.Items = append(result.Items, sent)
	result.Bytes += sent.Bytes
	result.SentBytes += sent.SentBytes
	if c.Report != nil {
		c.Report(sent)
	}
}
