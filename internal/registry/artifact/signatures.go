package artifact

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Media types, annotations and limits of signatures.
const (
	simpleSigning       types.MediaType = "application/vnd.dev.cosign.simplesigning.v1+json"
	sigstoreBundle                      = "application/vnd.dev.sigstore.bundle."
	signatureAnnotation                 = "dev.cosignproject.cosign/signature"
	maxPayload                          = 1 << 20
	maxSignatures                       = 50
)

// signatures downloads the signatures of a package: from the manifest with a tag derived from the
// signed digest and, since cosign 3, from the manifests that refer to it.
func (r *registries) signatures(ctx context.Context, ref *reference, resolved Resolved) (string, []signature, error) {
	p, err := r.puller(ref)
	if err != nil {
		return "", nil, err
	}
	signed, err := r.described(ctx, p, ref, resolved)
	if err != nil {
		return "", nil, err
	}
	r.store.counts.indexRequests.Add(2)
	tagged, err := p.manifestSignatures(ctx, p.repository.Tag(strings.Replace(signed.digest, ":", "-", 1)+".sig"))
	if err != nil && !errors.Is(err, ErrNotFound) {
		return "", nil, err
	}
	referring, err := p.referring(ctx, p.repository.Digest(signed.digest))
	if err != nil && len(tagged) == 0 && !errors.Is(err, ErrNotFound) { // not every registry supports referrers
		return "", nil, err
	}
	return signed.digest, append(tagged, referring...), nil
}

// referring downloads the signatures in all manifests that refer to another.
func (p *puller) referring(ctx context.Context, to name.Digest) ([]signature, error) {
	index, err := remote.Referrers(to, remote.Reuse(p.Puller), remote.WithContext(ctx))
	if err != nil {
		return nil, fmt.Errorf("requesting the referrers of %q: %w", to, registryError(err))
	}
	list, err := index.IndexManifest()
	if err != nil {
		return nil, fmt.Errorf("requesting the referrers of %q: %w", to, registryError(err))
	}
	var found []signature
	for _, manifest := range list.Manifests[:min(len(list.Manifests), maxSignatures)] {
		more, err := p.manifestSignatures(ctx, p.repository.Digest(manifest.Digest.String()))
		if err != nil {
			return nil, err
		}
		found = append(found, more...)
	}
	return found, nil
}

// manifestSignatures downloads the signatures in a manifest.
func (p *puller) manifestSignatures(ctx context.Context, ref name.Reference) ([]signature, error) {
	got, err := p.Get(ctx, ref)
	if err != nil {
		return nil, fmt.Errorf("requesting the signatures in %q: %w", ref, registryError(err))
	}
	list, err := v1.ParseManifest(bytes.NewReader(got.Manifest))
	if err != nil {
		return nil, fmt.Errorf("%w: the manifest of a signature is invalid", ErrUnverified)
	}
	var found []signature
	for _, layer := range list.Layers[:min(len(list.Layers), maxSignatures)] {
		more, err := p.layerSignatures(ctx, layer)
		if err != nil {
			return nil, err
		}
		found = append(found, more...)
	}
	return found, nil
}

func (p *puller) layerSignatures(ctx context.Context, layer v1.Descriptor) ([]signature, error) {
	isSimple := layer.MediaType == simpleSigning
	if !isSimple && !strings.HasPrefix(string(layer.MediaType), sigstoreBundle) {
		return nil, nil
	}
	text, err := p.blob(ctx, layer.Digest.String(), maxPayload)
	if err != nil {
		return nil, err
	}
	if !isSimple {
		return bundled(text), nil
	}
	signed, err := base64.StdEncoding.DecodeString(layer.Annotations[signatureAnnotation])
	if err != nil {
		return nil, nil //nolint:nilerr // an invalid signature is ignored
	}
	return []signature{simple(text, signed)}, nil
}
