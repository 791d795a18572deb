package transfer

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/registry/bundle"
)

// parallel is how many things are asked for or sent at a time.
const parallel = 4

// Copier copies bundles from one place to another.
type Copier struct {
	From Source
	To   Target
	// Repository is that of bundles at the target.
	Repository string
	// ImageRegistry is where images are that don't name a registry, that of the charts if it is empty.
	ImageRegistry          string
	SkipCharts, SkipImages bool
	// AsItIs leaves alone what the bundle says about registries: charts that are in others stay there.
	AsItIs bool
	// DryRun finds out what would be sent.
	DryRun bool
	// Tell is told of each thing that is done. It may be nil.
	Tell func(Sent)
}

// Sent says what became of one thing.
type Sent struct {
	Kind      string `json:"kind"`
	Reference string `json:"reference"`
	Digest    string `json:"digest"`
	// Bytes is its size, SentBytes what the target did not have.
	Bytes     int64 `json:"bytes"`
	SentBytes int64 `json:"sentBytes"`
}

// Copied says what was done, or would be done.
type Copied struct {
	Bundle string `json:"bundle"`
	From   string `json:"from"`
	To     string `json:"to"`
	DryRun bool   `json:"dryRun,omitempty"`
	Items  []Sent `json:"items"`
	// Tags are those that the bundle has at the target.
	Tags []string `json:"tags"`
	// Latest is the bundle that the tag for the latest stands for, if it is a newer one and was left alone.
	Latest    string `json:"latest,omitempty"`
	Bytes     int64  `json:"bytes"`
	SentBytes int64  `json:"sentBytes"`
}

// Copy copies a bundle with its charts and images. Nothing is written if something of it is missing.
func (c *Copier) Copy(ctx context.Context, b *Fetched) (*Copied, error) {
	name, err := bundle.ParseName(b.Name)
	if err != nil {
		return nil, err
	}
	items := c.refs(b.PackageBundle)
	if err := c.plan(ctx, items); err != nil {
		return nil, fmt.Errorf("looking at what bundle %s names: %w", b.Name, err)
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
			return result, fmt.Errorf("bundle %s: %w", b.Name, err)
		}
		if len(result.Tags) == 0 {
			c.record(result, sent)
		}
		result.Tags = append(result.Tags, tag)
	}
	return result, nil
}

// bundleItem is the bundle itself: as it was, or as it is at the target.
func (c *Copier) bundleItem(ctx context.Context, b *Fetched) (*item, Source, error) {
	it := &item{from: b.Ref, to: Ref{Kind: KindBundle, Repository: c.Repository}}
	local, changed, err := localise(b.PackageBundle)
	if err != nil {
		return nil, nil, err
	}
	if !changed || c.AsItIs {
		it.to.Digest = b.Ref.Digest
		return it, c.From, c.load(ctx, it, b.Ref)
	}
	a, err := newArtefact(local)
	if err != nil {
		return nil, nil, err
	}
	made := NewMemory()
	made.addBundle(b.Ref, a)
	it.from = Ref{Kind: KindBundle, Repository: c.Repository, Digest: a.manifest.Digest.String()}
	it.to.Digest = it.from.Digest
	return it, made, (&Copier{From: made}).load(ctx, it, it.from)
}

// localise makes a bundle name no registry, so that its charts are looked for beside it, as far as its signature allows that.
func localise(b *packagesv1.PackageBundle) (*packagesv1.PackageBundle, bool, error) {
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

// tags are those that a bundle gets: its name, and that of the latest unless a newer one has it.
func (c *Copier) tags(ctx context.Context, name bundle.Name, result *Copied) ([]string, error) {
	there, ok := c.To.(*Registry)
	if !ok {
		return []string{name.String()}, nil
	}
	current, err := Fetch(ctx, there, Ref{Repository: c.Repository, Tag: name.LatestTag()})
	switch {
	case errors.Is(err, ErrNotFound):
	case err != nil:
		return nil, fmt.Errorf("looking which bundle is the latest in %s: %w", there, err)
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
	if c.Tell != nil {
		c.Tell(sent)
	}
}
