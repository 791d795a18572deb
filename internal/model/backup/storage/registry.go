package storage

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/drover-dev/drover/internal/base/bounded"
	"github.com/drover-dev/drover/internal/base/pki"
)

// Types of artifacts.
const (
	snapshotType   = "application/vnd.drover.etcd-snapshot.v1"
	managementType = "application/vnd.drover.management-backup.v1"
	emptyType      = types.MediaType("application/vnd.oci.empty.v1+json")
)

// contents says what artifacts of a type are.
var contents = map[string]string{snapshotType: "a snapshot of etcd", managementType: "a backup of a management cluster"}

// archiveType returns the media type of the archive in an artifact.
func archiveType(artifact string) types.MediaType {
	return types.MediaType(artifact + ".tar+zstd+age")
}

// RegistryAccess is how a registry is reached. Both fields are optional.
type RegistryAccess struct {
	Transport http.RoundTripper
	Auth      authn.Authenticator
}

// SendingAccess returns how a manager sends archives to the registry of a location: with these
// credentials and no others of its host, and with limits for the responses, so that archives can't
// be read.
func SendingAccess(location, username, password string, ca []byte) (RegistryAccess, error) {
	trust, err := pki.ClientConfig(ca)
	if err != nil {
		return RegistryAccess{}, fmt.Errorf("reading the CA of the registry: %w", err)
	}
	host, _, _ := strings.Cut(strings.TrimPrefix(location, "oci://"), "/")
	out := RegistryAccess{
		Transport: bounded.NewPool(trust, silence).For(host, bounded.Limits{Peer: "registry", Body: bounded.MaxDocument}),
		Auth:      authn.Anonymous,
	}
	if username != "" {
		out.Auth = &authn.Basic{Username: username, Password: password}
	}
	return out, nil
}

// registry keeps archives as OCI artifacts in a repository for the cluster, with names as tags.
type registry struct {
	repository name.Repository
	// artifact is the type of the artifacts.
	artifact  string
	access    RegistryAccess
	temporary string
}

func newRegistry(location string, cluster Cluster, access Access) (*registry, error) {
	repository, err := name.NewRepository(path.Join(location, cluster.Namespace, cluster.Name), name.StrictValidation)
	if err != nil {
		return nil, fmt.Errorf("invalid location %q: use oci://REGISTRY/REPOSITORY with lower-case words: %w", "oci://"+location, err)
	}
	artifact := snapshotType
	if cluster.Namespace == Management {
		artifact = managementType
	}
	return &registry{repository, artifact, access.Registry, access.Temporary}, nil
}

func (r *registry) options(ctx context.Context) []remote.Option {
	out := []remote.Option{remote.WithContext(ctx), remote.WithUserAgent("drover")}
	if r.access.Transport != nil {
		out = append(out, remote.WithTransport(r.access.Transport))
	}
	if r.access.Auth != nil {
		return append(out, remote.WithAuth(r.access.Auth))
	}
	return append(out, remote.WithAuthFromKeychain(authn.DefaultKeychain))
}

func (r *registry) location(tag string) string { return "oci://" + r.repository.Tag(tag).String() }

// Put implements Storage. Registries identify content by its digest, so the archive, which is
// encrypted, is a temporary file first.
func (r *registry) Put(ctx context.Context, tag string, fill func(io.Writer) error) (Entry, error) {
	if err := r.checkFree(ctx, tag); err != nil {
		return Entry{}, err
	}
	file, err := os.CreateTemp(r.temporary, "drover-snapshot-*")
	if err != nil {
		return Entry{}, err
	}
	defer os.Remove(file.Name())
	if err := errors.Join(fill(file), file.Close()); err != nil {
		return Entry{}, err
	}
	layer, err := newFileLayer(file.Name(), archiveType(r.artifact))
	if err != nil {
		return Entry{}, err
	}
	if err := r.push(ctx, tag, layer); err != nil {
		return Entry{}, fmt.Errorf("pushing %s: %w", r.location(tag), err)
	}
	return Entry{Name: tag, Size: layer.size, Location: r.location(tag)}, nil
}

// checkFree returns an error unless the registry responds and has no such tag.
func (r *registry) checkFree(ctx context.Context, tag string) error {
	_, err := remote.Head(r.repository.Tag(tag), r.options(ctx)...)
	switch {
	case err == nil:
		return fmt.Errorf("%w: %s", ErrExists, r.location(tag))
	case isMissing(err):
		return nil
	default:
		return fmt.Errorf("connecting to the registry of %s: %w", r.location(tag), err)
	}
}

func (r *registry) push(ctx context.Context, tag string, layer *fileLayer) error {
	empty := static.NewLayer([]byte("{}"), emptyType)
	for _, l := range []v1.Layer{empty, layer} {
		if err := remote.WriteLayer(r.repository, l, r.options(ctx)...); err != nil {
			return err
		}
	}
	digest, err := empty.Digest()
	if err != nil {
		return err
	}
	content, err := json.Marshal(map[string]any{
		"schemaVersion": 2, "mediaType": types.OCIManifestSchema1, "artifactType": r.artifact,
		"config": v1.Descriptor{MediaType: emptyType, Digest: digest, Size: 2},
		"layers": []v1.Descriptor{{MediaType: archiveType(r.artifact), Digest: layer.digest, Size: layer.size}},
	})
	if err != nil {
		return err
	}
	return remote.Put(r.repository.Tag(tag), rawManifest(content), r.options(ctx)...)
}

type rawManifest []byte

func (m rawManifest) RawManifest() ([]byte, error)      { return m, nil }
func (rawManifest) MediaType() (types.MediaType, error) { return types.OCIManifestSchema1, nil }

// List implements Storage.
func (r *registry) List(ctx context.Context) ([]Entry, error) {
	tags, err := remote.List(r.repository, r.options(ctx)...)
	if isMissing(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing oci://%s: %w", r.repository, err)
	}
	var out []Entry
	for _, tag := range tags {
		if namePattern.MatchString(tag) {
			out = append(out, Entry{Name: tag, Location: r.location(tag)})
		}
	}
	return out, nil
}

// Get implements Storage. The content is verified against its digest as it is read.
func (r *registry) Get(ctx context.Context, tag string) (io.ReadCloser, error) {
	got, err := remote.Get(r.repository.Tag(tag), r.options(ctx)...)
	if isMissing(err) {
		return nil, fmt.Errorf("%w: %s", ErrNotFound, r.location(tag))
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", r.location(tag), err)
	}
	var m v1.Manifest
	if err := json.Unmarshal(got.Manifest, &m); err != nil || len(m.Layers) != 1 || m.Layers[0].MediaType != archiveType(r.artifact) {
		return nil, fmt.Errorf("%s is not %s", r.location(tag), contents[r.artifact])
	}
	layer, err := remote.Layer(r.repository.Digest(m.Layers[0].Digest.String()), r.options(ctx)...)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", r.location(tag), err)
	}
	return layer.Compressed()
}

// Delete implements Storage. The registry frees the space when it collects garbage.
func (r *registry) Delete(ctx context.Context, tag string) error {
	ref := r.repository.Tag(tag)
	found, err := remote.Head(ref, r.options(ctx)...)
	if err == nil {
		err = remote.Delete(r.repository.Digest(found.Digest.String()), r.options(ctx)...)
	}
	if err == nil { // Some registries keep the tags of a deleted manifest.
		if _, left := remote.Head(ref, r.options(ctx)...); left == nil {
			err = remote.Delete(ref, r.options(ctx)...)
		}
	}
	if isMissing(err) {
		return nil
	}
	return err
}

// isMissing reports whether a registry doesn't have a repository or a tag.
func isMissing(err error) bool {
	var e *transport.Error
	return errors.As(err, &e) && e.StatusCode == http.StatusNotFound
}

// fileLayer is a layer in a file.
type fileLayer struct {
	path   string
	media  types.MediaType
	digest v1.Hash
	size   int64
}

func newFileLayer(file string, media types.MediaType) (*fileLayer, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	digest, size, err := v1.SHA256(f)
	return &fileLayer{file, media, digest, size}, err
}

func (l *fileLayer) Digest() (v1.Hash, error)             { return l.digest, nil }
func (l *fileLayer) DiffID() (v1.Hash, error)             { return l.digest, nil }
func (l *fileLayer) Compressed() (io.ReadCloser, error)   { return os.Open(l.path) }
func (l *fileLayer) Uncompressed() (io.ReadCloser, error) { return os.Open(l.path) }
func (l *fileLayer) Size() (int64, error)                 { return l.size, nil }
func (l *fileLayer) MediaType() (types.MediaType, error)  { return l.media, nil }
