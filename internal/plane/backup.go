package plane

import (
	"archive/tar"
	"context"
	"crypto"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"filippo.io/age"
	"github.com/klauspost/compress/zstd"

	"github.com/drover-dev/drover/internal/base/atomicfile"
	"github.com/drover-dev/drover/internal/base/filelock"
	"github.com/drover-dev/drover/internal/base/version"
)

// A backup is age(zstd(tar)). Its first entry is the manifest, the second its signature, and the
// others are the files that the manifest lists, in that order:
//
//	manifest.json  manifest.sig  etcd.snapshot  encryption/config.yaml  pki/…  home.json
const (
	backupFormat  = 2
	signedFormat  = 2 // the first with a signature
	manifestName  = "manifest.json"
	snapshotName  = "etcd.snapshot"
	manifestLimit = 1 << 20
)

// Manifest lists the content of a backup, so that it can be verified before use.
type Manifest struct {
	Format     int            `json:"format"`
	HomeFormat int            `json:"homeFormat"`
	Created    time.Time      `json:"created"`
	Drover     string         `json:"drover"`
	Kubernetes string         `json:"kubernetes"`
	Files      []ManifestFile `json:"files"`
}

// ManifestFile is one file of a backup.
type ManifestFile struct {
	Name   string `json:"name"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

// Backup writes a consistent copy of the running plane to path, encrypted for the recipients. The
// file appears whole or not at all.
func Backup(ctx context.Context, h Home, path string, to ...age.Recipient) (Manifest, error) {
	if err := h.Check(); err != nil {
		return Manifest{}, err
	}
	if !h.Running() {
		return Manifest{}, ErrNotRunning
	}
	if _, err := os.Lstat(path); err == nil {
		return Manifest{}, fmt.Errorf("%q already exists: delete it or choose another name", path)
	}
	return h.collect(ctx, func(m Manifest, c contents) error { return writeBackup(path, m, c, to) })
}

// collect passes a consistent copy of the running plane to write.
func (h Home) collect(ctx context.Context, write func(Manifest, contents) error) (Manifest, error) {
	// A rotation between the copies of the data and of the keys would leave out a key.
	lock, err := filelock.Wait(ctx, h.encryptionLock())
	if err != nil {
		return Manifest{}, fmt.Errorf("waiting for a rotation of the encryption key: %w", err)
	}
	defer lock.Close()
	work, err := os.MkdirTemp(h.runDir(), "backup-")
	if err != nil {
		return Manifest{}, fmt.Errorf("creating a temporary directory: %w", err)
	}
	defer os.RemoveAll(work)
	if err := h.snapshot(ctx, filepath.Join(work, snapshotName)); err != nil {
		return Manifest{}, err
	}
	sources, err := h.backupSources(filepath.Join(work, snapshotName))
	if err != nil {
		return Manifest{}, err
	}
	manifest, err := h.describe(sources)
	if err != nil {
		return Manifest{}, err
	}
	key, err := h.signer()
	if err != nil {
		return Manifest{}, err
	}
	return manifest, write(manifest, contents{sources, key})
}

// snapshot requests a snapshot from etcd, which is consistent under load.
func (h Home) snapshot(ctx context.Context, path string) error {
	config, err := h.readConfig()
	if err != nil {
		return err
	}
	client, err := h.etcdClient(config)
	if err != nil {
		return err
	}
	defer client.Close()
	stream, err := client.Snapshot(ctx)
	if err != nil {
		return fmt.Errorf("requesting a snapshot from etcd: %w", err)
	}
	defer stream.Close()
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("saving the snapshot: %w", err)
	}
	_, err = io.Copy(f, stream)
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("saving the snapshot: %w", err)
	}
	return nil
}

// contents are the files of a backup and the key that signs them.
type contents struct {
	sources []source
	key     crypto.Signer
}

// source is a file and the name it has in a backup.
type source struct{ name, path string }

// backupSources returns the files that can't be created again. Those under run/ can, and so can
// config.json, whose ports may be taken where the backup is restored.
func (h Home) backupSources(snapshot string) ([]source, error) {
	sources := []source{{snapshotName, snapshot}, {"home.json", h.metaFile()}}
	for _, dir := range []string{"encryption", "pki"} {
		files, err := os.ReadDir(h.path(dir))
		if err != nil {
			return nil, fmt.Errorf("collecting files: %w", err)
		}
		for _, f := range files {
			if f.Type().IsRegular() && f.Name()[0] != '.' {
				sources = append(sources, source{dir + "/" + f.Name(), h.path(dir, f.Name())})
			}
		}
	}
	return sources, nil
}

func (h Home) describe(sources []source) (Manifest, error) {
	meta, err := h.ReadMeta()
	if err != nil {
		return Manifest{}, err
	}
	m := Manifest{
		Format: backupFormat, HomeFormat: meta.Format, Created: time.Now().UTC().Truncate(time.Second),
		Drover: version.Get().Version, Kubernetes: meta.Kubernetes,
	}
	for _, s := range sources {
		f, err := describeFile(s)
		if err != nil {
			return Manifest{}, err
		}
		m.Files = append(m.Files, f)
	}
	return m, nil
}

func describeFile(s source) (ManifestFile, error) {
	f, err := os.Open(s.path)
	if err != nil {
		return ManifestFile{}, fmt.Errorf("reading %q: %w", s.path, err)
	}
	defer f.Close()
	sum := sha256.New()
	size, err := io.Copy(sum, f)
	if err != nil {
		return ManifestFile{}, fmt.Errorf("reading %q: %w", s.path, err)
	}
	return ManifestFile{Name: s.name, Size: size, SHA256: hex.EncodeToString(sum.Sum(nil))}, nil
}

// writeBackup writes a temporary file first, so that a full disk leaves no file that resembles a
// backup.
func writeBackup(path string, m Manifest, c contents, to []age.Recipient) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return fmt.Errorf("writing backup: %w", err)
	}
	defer os.Remove(tmp.Name())
	err = encode(tmp, m, c, to)
	if err := errors.Join(err, tmp.Sync(), tmp.Close()); err != nil {
		return fmt.Errorf("writing backup %q: %w", path, err)
	}
	if err := os.Link(tmp.Name(), path); err != nil {
		return fmt.Errorf("writing backup %q: %w", path, err)
	}
	return atomicfile.SyncDir(filepath.Dir(path))
}

func encode(w io.Writer, m Manifest, c contents, to []age.Recipient) error {
	sealed, err := age.Encrypt(w, to...)
	if err != nil {
		return err
	}
	packed, err := zstd.NewWriter(sealed)
	if err != nil {
		return err
	}
	archive := tar.NewWriter(packed)
	err = encodeEntries(archive, m, c)
	return errors.Join(err, archive.Close(), packed.Close(), sealed.Close())
}

func encodeEntries(archive *tar.Writer, m Manifest, c contents) error {
	manifest, err := json.Marshal(m)
	if err != nil {
		return err
	}
	if err := archive.WriteHeader(entry(manifestName, int64(len(manifest)), m.Created)); err != nil {
		return err
	}
	if _, err := archive.Write(manifest); err != nil {
		return err
	}
	if err := signManifest(archive, m, manifest, c.key); err != nil {
		return err
	}
	for i, s := range c.sources {
		if err := archive.WriteHeader(entry(s.name, m.Files[i].Size, m.Created)); err != nil {
			return err
		}
		f, err := os.Open(s.path)
		if err != nil {
			return err
		}
		_, err = io.Copy(archive, f)
		if err := errors.Join(err, f.Close()); err != nil {
			return err
		}
	}
	return nil
}

func entry(name string, size int64, at time.Time) *tar.Header {
	return &tar.Header{Typeflag: tar.TypeReg, Name: name, Size: size, Mode: 0o600, ModTime: at}
}

// allowed restricts the paths of an archive, so that a crafted one can't write outside the
// directories of a backup.
func (m Manifest) allowed(name string) bool {
	if !fs.ValidPath(name) {
		return false
	}
	return name == snapshotName || name == "home.json" || slices.Contains([]string{"pki", "encryption"}, filepath.Dir(name))
}
