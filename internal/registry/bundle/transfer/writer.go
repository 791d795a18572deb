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

// ErrExists says that an archive is there already.
var ErrExists = errors.New("the archive is there already: remove it, or name another")

// partialSuffix is what the name of an archive ends with until it is whole.
const partialSuffix = ".partial"

// ArchiveWriter is a target: it makes an archive. Until Finish the file has another name; whoever makes the same archive again goes on with
// what is in that.
type ArchiveWriter struct {
	path string

	mu sync.Mutex
	// file ends at end, after the last entry that is whole.
	file  *os.File
	end   int64
	have  map[string]int64
	index []v1.Descriptor
}

// CreateArchive begins an archive, or goes on with one that was not finished.
func CreateArchive(file string) (*ArchiveWriter, error) {
	if err := free(file); err != nil {
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

// PlanArchive knows what CreateArchive would begin with, and writes nothing. It is for dry runs.
func PlanArchive(file string) (*ArchiveWriter, error) {
	if err := free(file); err != nil {
		return nil, err
	}
	w := &ArchiveWriter{path: file, have: map[string]int64{}}
	f, err := os.Open(file + partialSuffix)
	if errors.Is(err, fs.ErrNotExist) {
		return w, nil
	}
	if err != nil {
		return nil, fmt.Errorf("looking at the archive: %w", err)
	}
	w.file = f
	w.resume()
	return w, nil
}

func free(file string) error {
	if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(fmt.Errorf("writing archive %q: %w", file, ErrExists), err)
	}
	return nil
}

// resume finds the entries that are whole. What comes after the first that is not is written again.
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

// rewind makes the file end where it is whole.
func (w *ArchiveWriter) rewind() error {
	_, seekErr := w.file.Seek(w.end, io.SeekStart)
	if err := errors.Join(w.file.Truncate(w.end), seekErr); err != nil {
		return fmt.Errorf("writing archive %q: %w", w.path, err)
	}
	return nil
}

// String is the name of the file.
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

// PutBlob implements Target. A tar has one entry after the other, so there is one writer at a time.
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

// write appends an entry. The format has one block before the content, whatever its size.
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

// PutManifest implements Target. One without a tag is part of another, unless it is an image.
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

// Check implements Target. What is here was compared with its digest when it was written, and is so again by Finish.
func (w *ArchiveWriter) Check(ctx context.Context, ref Ref, d v1.Descriptor) error {
	if found, err := w.HasBlob(ctx, ref, d); err != nil || !found {
		return errors.Join(fmt.Errorf("%s in archive %q: %w", d.Digest, w.path, ErrNotFound), err)
	}
	return nil
}

// Finish writes the index, reads everything back, and gives the file its name.
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
	_, err = w.file.Write(make([]byte, 2*tarBlock)) // A tar ends with two empty blocks.
	return errors.Join(err, w.file.Sync(), w.file.Close())
}

// Close leaves what was written for the next time.
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

// mediaType is what a manifest says of itself, or looks like.
func mediaType(content []byte) types.MediaType {
	var parsed struct {
		MediaType types.MediaType   `json:"mediaType"`
		Manifests []json.RawMessage `json:"manifests"`
	}
	_ = json.Unmarshal(content, &parsed) // What is no manifest is refused by whoever reads it.
	switch {
	case parsed.MediaType != "":
		return parsed.MediaType
	case len(parsed.Manifests) > 0:
		return types.OCIImageIndex
	default:
		return types.OCIManifestSchema1
	}
}
