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

// ChartsRepository is what the repositories of charts are below, unless somebody chooses another.
const ChartsRepository = "charts"

// preload offers the charts in a file system, one for each directory.
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
		if err := s.offer(ctx, chart, log); err != nil {
			return fmt.Errorf("chart %q: %w", dir.Name(), err)
		}
	}
	return nil
}

// offer puts a chart in unless it is there. What somebody else has put there in that version stays.
func (s *store) offer(ctx context.Context, c *Chart, log *slog.Logger) error {
	wanted, err := c.artefact(shipped)
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
		return fmt.Errorf("looking for version %s: %w", c.Version, err)
	case err == nil && there.Digest == wanted.digest() && complete(ctx, repository, wanted):
		return nil
	case err == nil && there.Digest != wanted.digest() && !ours(ctx, repository, there.Digest):
		log.Info("A chart of another origin is in the place of one that ships with Drover", "chart", c.Name, "version", c.Version)
		return nil
	}
	return s.put(ctx, repository, wanted)
}

// complete tells whether all of an artefact is there and undamaged.
func complete(ctx context.Context, repository distribution.Repository, a *artefact) bool {
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

// ours tells whether Drover put a manifest there. One that can't be read is of no use to anybody.
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

// put writes an artefact, the tag last. Content is not replaced by what is written, so what may be damaged goes first.
func (s *store) put(ctx context.Context, repository distribution.Repository, a *artefact) error {
	for _, b := range append(a.blobs, blob{v1.MediaTypeImageManifest, a.manifest}) {
		if err := s.remove(digest.FromBytes(b.content)); err != nil {
			return err
		}
	}
	for _, b := range a.blobs {
		if _, err := repository.Blobs(ctx).Put(ctx, b.mediaType, b.content); err != nil {
			return fmt.Errorf("writing: %w", err)
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
