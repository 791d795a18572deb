package registry

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"

	"github.com/distribution/distribution/v3"
	"github.com/distribution/distribution/v3/manifest/ocischema"
	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
)

// ChartsRepository is the default parent of chart repositories.
const ChartsRepository = "charts"

// preload adds the charts in a file system, one per directory.
func (s *store) preload(ctx context.Context, charts fs.FS, log *slog.Logger) error {
	dirs, err := fs.ReadDir(charts, ".")
	if err != nil {
		return err
	}
	for _, dir := range dirs {
		if !dir.IsDir() {
			continue
		}
		archive, err := Pack(charts, dir.Name())
		if err != nil {
			return err
		}
		chart, err := ReadChart(archive)
		if err != nil {
			return fmt.Errorf("chart %q: %w", dir.Name(), err)
		}
		if err := s.addShipped(ctx, chart, log); err != nil {
			return fmt.Errorf("chart %q: %w", dir.Name(), err)
		}
	}
	return nil
}

// addShipped adds a chart that ships with Drover. It keeps a chart of the same version that a user
// pushed.
func (s *store) addShipped(ctx context.Context, c *Chart, log *slog.Logger) error {
	wanted, err := c.artifact(shipped)
	if err != nil {
		return err
	}
	repository, err := s.repository(ctx, ChartsRepository+"/"+c.Name)
	if err != nil {
		return err
	}
	there, err := repository.Tags(ctx).Get(ctx, wanted.tag)
	var unknown distribution.ErrTagUnknown
	switch {
	case err != nil && !errors.As(err, &unknown) && !isMissing(err):
		return fmt.Errorf("reading tag %s: %w", wanted.tag, err)
	case err == nil && there.Digest == wanted.digest() && complete(ctx, repository, wanted):
		return nil
	case err == nil && there.Digest != wanted.digest() && !ours(ctx, repository, there.Digest):
		log.Info("Keeping a pushed chart instead of the one that ships with Drover", "chart", c.Name, "version", c.Version)
		return nil
	}
	return s.put(ctx, repository, wanted)
}

// complete reports whether the repository contains all of an artifact, undamaged.
func complete(ctx context.Context, repository distribution.Repository, a *artifact) bool {
	for _, b := range a.blobs {
		wanted := digest.FromBytes(b.content)
		if content, err := repository.Blobs(ctx).Get(ctx, wanted); err != nil || digest.FromBytes(content) != wanted {
			return false
		}
	}
	manifest, err := manifestOf(ctx, repository, a.digest())
	if err != nil {
		return false
	}
	_, content, err := manifest.Payload()
	return err == nil && digest.FromBytes(content) == a.digest()
}

// ours reports whether Drover may replace a manifest: it ships with Drover, or is unreadable.
func ours(ctx context.Context, repository distribution.Repository, d digest.Digest) bool {
	manifest, err := manifestOf(ctx, repository, d)
	if err != nil {
		return true
	}
	oci, ok := manifest.(*ocischema.DeserializedManifest)
	return ok && oci.Annotations[shipped] != ""
}

func manifestOf(ctx context.Context, repository distribution.Repository, d digest.Digest) (distribution.Manifest, error) {
	manifests, err := repository.Manifests(ctx)
	if err != nil {
		return nil, err
	}
	return manifests.Get(ctx, d)
}

// put writes an artifact, the tag last. It deletes existing content first, which may be damaged,
// because writing doesn't replace it.
func (s *store) put(ctx context.Context, repository distribution.Repository, a *artifact) error {
	for _, b := range append(a.blobs, blob{v1.MediaTypeImageManifest, a.manifest}) {
		if err := s.remove(digest.FromBytes(b.content)); err != nil {
			return err
		}
	}
	for _, b := range a.blobs {
		if _, err := repository.Blobs(ctx).Put(ctx, b.mediaType, b.content); err != nil {
			return fmt.Errorf("writing a blob: %w", err)
		}
	}
	manifest, about, err := distribution.UnmarshalManifest(v1.MediaTypeImageManifest, a.manifest)
	if err != nil {
		return err
	}
	manifests, err := repository.Manifests(ctx)
	if err != nil {
		return err
	}
	if _, err := manifests.Put(ctx, manifest); err != nil {
		return fmt.Errorf("writing the manifest: %w", err)
	}
	return repository.Tags(ctx).Tag(ctx, a.tag, about)
}
