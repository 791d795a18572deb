package transfer

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
)

// sendAll sends charts and images in parallel. The result is sorted by kind and reference.
func (c *Copier) sendAll(ctx context.Context, items []*item, result *Copied) error {
	s := &sender{Copier: c, from: c.From}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallel)
	var mu sync.Mutex
	for _, it := range items {
		group.Go(func() error {
			sent, err := s.send(ctx, it)
			if err != nil {
				return fmt.Errorf("copying %s %s: %w", it.from.Kind, it.from, err)
			}
			mu.Lock()
			defer mu.Unlock()
			c.record(result, sent)
			return nil
		})
	}
	err := group.Wait()
	slices.SortFunc(result.Items, func(a, b Sent) int { return strings.Compare(a.Kind+a.Reference+a.Digest, b.Kind+b.Reference+b.Digest) })
	return err
}

// sender sends planned items.
type sender struct {
	*Copier

	from Source
}

// send sends the blobs of an item, then its manifests, and sets the tag last.
func (s *sender) send(ctx context.Context, it *item) (Sent, error) {
	done := Sent{Kind: it.to.Kind, Reference: it.to.String(), Digest: it.root().Digest.String(), Bytes: it.size()}
	if s.DryRun {
		missing, err := s.missing(ctx, it)
		done.SentBytes = missing
		return done, err
	}
	var sent atomic.Int64
	for _, d := range it.blobs {
		open := func() (io.ReadCloser, error) {
			body, err := s.from.Blob(ctx, it.from, d)
			if err != nil {
				return nil, err
			}
			return &counted{body, &sent}, nil
		}
		if err := s.To.PutBlob(ctx, it.to, Blob{Descriptor: d, Open: open}); err != nil {
			return done, err
		}
		if err := s.To.Check(ctx, it.to, d); err != nil {
			return done, err
		}
	}
	for i, m := range it.manifests {
		to := it.to
		if i < len(it.manifests)-1 {
			to = Ref{Repository: it.to.Repository, Digest: m.Digest.String()}
		}
		if err := s.manifest(ctx, to, m, &sent); err != nil {
			return done, err
		}
	}
	done.SentBytes = sent.Load()
	return done, nil
}

// manifest sends a manifest that the target doesn't have. It always sets the tag.
func (s *sender) manifest(ctx context.Context, to Ref, m Manifest, sent *atomic.Int64) error {
	to.Digest = m.Digest.String()
	found, err := s.To.HasManifest(ctx, to)
	if err != nil {
		return err
	}
	if !found {
		sent.Add(int64(len(m.Content)))
	}
	if !found || to.Kind != "" {
		if err := s.To.PutManifest(ctx, to, m); err != nil {
			return err
		}
	}
	return s.To.Check(ctx, to, m.descriptor())
}

// missing returns the number of bytes that the target doesn't have.
func (s *sender) missing(ctx context.Context, it *item) (int64, error) {
	total := int64(0)
	for _, d := range it.blobs {
		found, err := s.To.HasBlob(ctx, it.to, d)
		if err != nil {
			return 0, err
		}
		if !found {
			total += d.Size
		}
	}
	for _, m := range it.manifests {
		to := it.to
		to.Digest = m.Digest.String()
		found, err := s.To.HasManifest(ctx, to)
		if err != nil {
			return 0, err
		}
		if !found {
			total += int64(len(m.Content))
		}
	}
	return total, nil
}

// counted counts the bytes read.
type counted struct {
	io.ReadCloser

	read *atomic.Int64
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	c.read.Add(int64(n))
	return n, err
}
