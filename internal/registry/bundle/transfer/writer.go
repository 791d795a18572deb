package transfer

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"sync"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// ErrExists is returned if an archive already exists.
var ErrExists = errors.New("the file already exists")

// partialSuffix is the suffix of an unfinished archive.
const partialSuffix = ".partial"

// ArchiveWriter is a target that writes an archive. Until Finish, the file has the suffix
// ".partial"; CreateArchive resumes such a file.
type ArchiveWriter struct {
	path string

	mu sync.Mutex
	// end is the offset after the last complete entry of file.
	file  *os.File
	end   int64
	have  map[string]int64
	index []v1.Descriptor
}

// CreateArchive creates an archive, or resumes an unfinished one.
func CreateArchive(file string) (*ArchiveWriter, error) {
	if err := checkAbsent(file); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(file+partialSuffix, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, fmt.Errorf("writing the archive: %w", err)
	}
	w := &ArchiveWriter{path: file, file: f, have: map[string]int64{}}
	w.resume()
	if err := w.rewind(); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return w, nil
}

// PlanArchive returns the state that CreateArchive would start with, for dry runs. It writes
// nothing.
func PlanArchive(file string) (*ArchiveWriter, error) {
	if err := checkAbsent(file); err != nil {
		return nil, err
	}
	w := &ArchiveWriter{path: file, have: map[string]int64{}}
	f, err := os.Open(file + partialSuffix)
	if errors.Is(err, fs.ErrNotExist) {
		return w, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the unfinished archive: %w", err)
	}
	w.file = f
	w.resume()
	return w, nil
}

func checkAbsent(file string) error {
	if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(fmt.Errorf("writing archive %q: %w", file, ErrExists), err)
	}
	return nil
}

// resume finds the complete entries, up to the first incomplete one.
func (w *ArchiveWriter) resume() {
	entries := tar.NewReader(w.file)
	for {
		header, err := entries.Next()
		if err != nil {
			return
		}
		hex, found := strings.CutPrefix(header.Name, blobsDir)
		if !found {
			return
		}
		d := v1.Descriptor{Digest: v1.Hash{Algorithm: "sha256", Hex: hex}, Size: header.Size}
		if _, err := io.Copy(io.Discard, verified(io.NopCloser(entries), d)); err != nil {
			return
		}
		w.end += tarBlock + (header.Size+tarBlock-1)/tarBlock*tarBlock
		w.have[hex] = header.Size
	}
}

// rewind truncates the file after the last complete entry.
func (w *ArchiveWriter) rewind() error {
	_, seekErr := w.file.Seek(w.end, io.SeekStart)
	if err := errors.Join(w.file.Truncate(w.end), seekErr); err != nil {
		return fmt.Errorf("writing archive %q: %w", w.path, err)
	}
	return nil
}

// String returns the name of the file.
func (w *ArchiveWriter) String() string { return w.path }

// HasManifest implements Target.
func (w *ArchiveWriter) HasManifest(_ context.Context, ref Ref) (bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, found := w.have[strings.TrimPrefix(ref.Digest, "sha256:")]
	return found, nil
}

// HasBlob implements Target.
func (w *ArchiveWriter) HasBlob(_ context.Context, _ Ref, d v1.Descriptor) (bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, found := w.have[d.Digest.Hex]
	return found, nil
}

// PutBlob implements Target. Entries of a tar file are sequential, so only one call writes at a
// time.
func (w *ArchiveWriter) PutBlob(_ context.Context, _ Ref, b Blob) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, found := w.have[b.Digest.Hex]; found {
		return nil
	}
	body, err := b.Open()
	if err != nil {
		return err
	}
	defer body.Close()
	if err := w.write(blobsDir+b.Digest.Hex, b.Size, verified(body, b.Descriptor)); err != nil {
		return errors.Join(fmt.Errorf("writing %s to archive %q: %w", b.Digest, w.path, explain(err)), w.rewind())
	}
	w.have[b.Digest.Hex] = b.Size
	return nil
}

// write appends an entry. In the GNU format, the header is one block regardless of the size.
func (w *ArchiveWriter) write(name string, size int64, content io.Reader) error {
	entry := tar.NewWriter(w.file)
	if err := entry.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: size, Mode: 0o644, Format: tar.FormatGNU}); err != nil {
		return err
	}
	if _, err := io.Copy(entry, content); err != nil {
		return err
	}
	if err := entry.Flush(); err != nil {
		return err
	}
	w.end += tarBlock + (size+tarBlock-1)/tarBlock*tarBlock
	return nil
}

// PutManifest implements Target. Manifests without a kind belong to an index and are not listed.
func (w *ArchiveWriter) PutManifest(ctx context.Context, ref Ref, m Manifest) error {
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(m.Content)), nil }
	if err := w.PutBlob(ctx, ref, Blob{Descriptor: m.descriptor(), Open: open}); err != nil || ref.Kind == "" {
		return err
	}
	d := m.descriptor()
	d.Annotations = map[string]string{kindAnnotation: ref.Kind, ocispec.AnnotationRefName: path.Clean(ref.Repository)}
	if ref.Tag != "" {
		d.Annotations[ocispec.AnnotationRefName] += ":" + ref.Tag
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.index = append(w.index, d)
	return nil
}

// Check implements Target. PutBlob and Finish verify digests, so it only checks existence.
func (w *ArchiveWriter) Check(ctx context.Context, ref Ref, d v1.Descriptor) error {
	if found, err := w.HasBlob(ctx, ref, d); err != nil || !found {
		return errors.Join(fmt.Errorf("%s in archive %q: %w", d.Digest, w.path, ErrNotFound), err)
	}
	return nil
}

// Finish writes the index, verifies the archive and renames it to its final name.
func (w *ArchiveWriter) Finish() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.finish(); err != nil {
		return fmt.Errorf("finishing archive %q: %w", w.path, err)
	}
	a, err := OpenArchive(w.path + partialSuffix)
	if err != nil {
		return err
	}
	defer a.Close()
	if err := a.check(); err != nil {
		return err
	}
	return os.Rename(w.path+partialSuffix, w.path)
}

func (w *ArchiveWriter) finish() error {
	layout, err := json.Marshal(ocispec.ImageLayout{Version: ocispec.ImageLayoutVersion})
	if err != nil {
		return err
	}
	index, err := json.Marshal(v1.IndexManifest{SchemaVersion: 2, MediaType: types.OCIImageIndex, Manifests: w.index})
	if err != nil {
		return err
	}
	for _, file := range []struct {
		name    string
		content []byte
	}{{ocispec.ImageLayoutFile, layout}, {ocispec.ImageIndexFile, index}} {
		if err := w.write(file.name, int64(len(file.content)), bytes.NewReader(file.content)); err != nil {
			return err
		}
	}
	_, err = w.file.Write(make([]byte, 2*tarBlock)) // a tar file ends with two empty blocks
	return errors.Join(err, w.file.Sync(), w.file.Close())
}

// Close closes the file. An unfinished archive can be resumed.
func (w *ArchiveWriter) Close() error {
	if w.file == nil {
		return nil
	}
	err := w.file.Close()
	if errors.Is(err, fs.ErrClosed) {
		return nil
	}
	return err
}

// mediaType returns the media type in a manifest, or infers it from the fields.
func mediaType(content []byte) types.MediaType {
	var parsed struct {
		MediaType types.MediaType   `json:"mediaType"`
		Manifests []json.RawMessage `json:"manifests"`
	}
	_ = json.Unmarshal(content, &parsed) // readers reject an invalid manifest
	switch {
	case parsed.MediaType != "":
		return parsed.MediaType
	case len(parsed.Manifests) > 0:
		return types.OCIImageIndex
	default:
		return types.OCIManifestSchema1
	}
}
