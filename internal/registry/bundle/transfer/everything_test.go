package transfer_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/drover-dev/drover/internal/registry/bundle/transfer"
)

// everything reads all content of a manifest and verifies the digests itself.
type everything struct {
	transfer.Source

	blobs int
}

func (e *everything) walk(ctx context.Context, ref transfer.Ref) error {
	m, err := e.Manifest(ctx, ref)
	if err != nil {
		return err
	}
	if got := fmt.Sprintf("sha256:%x", sha256.Sum256(m.Content)); got != ref.Digest {
		return fmt.Errorf("%s is %s", ref, got)
	}
	if m.MediaType.IsIndex() {
		index, err := v1.ParseIndexManifest(bytes.NewReader(m.Content))
		if err != nil {
			return err
		}
		for _, child := range index.Manifests {
			if err := e.walk(ctx, transfer.Ref{Repository: ref.Repository, Digest: child.Digest.String()}); err != nil {
				return err
			}
		}
		return nil
	}
	parsed, err := v1.ParseManifest(bytes.NewReader(m.Content))
	if err != nil {
		return err
	}
	for _, d := range append(parsed.Layers, parsed.Config) {
		if err := e.read(ctx, ref, d); err != nil {
			return err
		}
	}
	return nil
}

func (e *everything) read(ctx context.Context, ref transfer.Ref, d v1.Descriptor) error {
	body, err := e.Blob(ctx, ref, d)
	if err != nil {
		return err
	}
	defer body.Close()
	content, err := io.ReadAll(body)
	if err != nil {
		return err
	}
	if got := fmt.Sprintf("sha256:%x", sha256.Sum256(content)); got != d.Digest.String() {
		return fmt.Errorf("%s of %s is %s", d.Digest, ref, got)
	}
	e.blobs++
	return nil
}
