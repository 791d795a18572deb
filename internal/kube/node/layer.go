package node

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/klauspost/compress/zstd"

	"github.com/drover-dev/drover/internal/kube"
	"github.com/drover-dev/drover/internal/kube/node/host"
)

// layerSet contains the layers by name.
type layerSet map[string]v1.Layer

func (b Builder) layers(dir string) (layerSet, error) {
	tools, err := host.Collect(proxyTools())
	if err != nil {
		return nil, err
	}
	shell, err := host.Collect(shellTools())
	if err != nil {
		return nil, err
	}
	content := map[string]func(w *tar.Writer) error{
		"base":     writeBase,
		"kube":     func(w *tar.Writer) error { return writeKube(w, b.Kube.Path) },
		"tools":    tools.WriteTar,
		shellLayer: shell.WriteTar,
		CoreDNS:    func(w *tar.Writer) error { return writeFile(w, "coredns", b.Programs.Path(CoreDNS)) },
		Pause:      func(w *tar.Writer) error { return writeFile(w, "pause", b.Programs.Path(Pause)) },
		Network:    func(w *tar.Writer) error { return writeFile(w, "cni", b.Programs.Path(Network)) },
	}
	set := layerSet{}
	for layer, write := range content {
		if set[layer], err = newLayer(filepath.Join(dir, layer+".tar"), write); err != nil {
			return nil, fmt.Errorf("packing layer %q: %w", layer, err)
		}
	}
	return set, nil
}

// layer is a layer in a file. It is compressed although it never leaves this host, because
// containerd keeps only compressed layers after unpacking.
type layer struct {
	path           string
	digest, diffID v1.Hash
	size           int64
}

// newLayer compresses and hashes while it writes.
func newLayer(path string, write func(w *tar.Writer) error) (v1.Layer, error) {
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	digest, diffID := sha256.New(), sha256.New()
	z, err := zstd.NewWriter(io.MultiWriter(f, digest), zstd.WithEncoderLevel(zstd.SpeedFastest))
	if err != nil {
		return nil, err
	}
	w := tar.NewWriter(io.MultiWriter(z, diffID))
	if err := errors.Join(write(w), w.Close(), z.Close()); err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	return layer{path: path, digest: hashOf(digest), diffID: hashOf(diffID), size: info.Size()}, nil
}

func hashOf(h hash.Hash) v1.Hash {
	return v1.Hash{Algorithm: "sha256", Hex: hex.EncodeToString(h.Sum(nil))}
}

func (l layer) Digest() (v1.Hash, error)            { return l.digest, nil }
func (l layer) DiffID() (v1.Hash, error)            { return l.diffID, nil }
func (l layer) Compressed() (io.ReadCloser, error)  { return os.Open(l.path) }
func (l layer) Size() (int64, error)                { return l.size, nil }
func (l layer) MediaType() (types.MediaType, error) { return types.OCILayerZStd, nil }

func (l layer) Uncompressed() (io.ReadCloser, error) {
	f, err := os.Open(l.path)
	if err != nil {
		return nil, err
	}
	z, err := zstd.NewReader(f)
	if err != nil {
		f.Close()
		return nil, err
	}
	return z.IOReadCloser(), nil
}

func writeBase(w *tar.Writer) error {
	for _, dir := range []string{"etc/", "tmp/", "var/", "usr/", "usr/bin/", "usr/sbin/", "usr/lib/", "usr/lib64/", "usr/local/", "usr/local/bin/"} {
		mode := int64(0o755)
		if dir == "tmp/" {
			mode = 0o1777
		}
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: dir, Mode: mode, ModTime: time.Unix(0, 0)}); err != nil {
			return err
		}
	}
	for _, dir := range []string{"bin", "sbin", "lib", "lib64"} {
		if err := writeLink(w, dir, "usr/"+dir); err != nil {
			return err
		}
	}
	for _, file := range []string{"passwd", "group", "nsswitch.conf"} {
		data, err := skeleton.ReadFile("skel/etc/" + file)
		if err != nil {
			return err
		}
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "etc/" + file, Mode: 0o644, Size: int64(len(data)), ModTime: time.Unix(0, 0)}); err != nil {
			return err
		}
		if _, err := w.Write(data); err != nil {
			return err
		}
	}
	return nil
}

func writeKube(w *tar.Writer, binary string) error {
	if err := writeFile(w, "usr/local/bin/kube", binary); err != nil {
		return err
	}
	for _, program := range kube.Programs() {
		if err := writeLink(w, "usr/local/bin/"+program, "kube"); err != nil {
			return err
		}
	}
	return nil
}

func writeLink(w *tar.Writer, path, target string) error {
	return w.WriteHeader(&tar.Header{Typeflag: tar.TypeSymlink, Name: path, Linkname: target, Mode: 0o777, ModTime: time.Unix(0, 0)})
}

func writeFile(w *tar.Writer, path, from string) error {
	f, err := os.Open(from)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: path, Mode: 0o755, Size: info.Size(), ModTime: time.Unix(0, 0)}); err != nil {
		return err
	}
	_, err = io.Copy(w, f)
	return err
}
