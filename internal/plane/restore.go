package plane

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"filippo.io/age"
	"github.com/klauspost/compress/zstd"

	"github.com/drover-dev/drover/internal/base/atomicfile"
	"github.com/drover-dev/drover/internal/base/version"
	"github.com/drover-dev/drover/internal/kube"
)

// NotABackupError means that the file is not a readable backup: damaged, truncated, or another
// format.
type NotABackupError struct {
	Path string
	Err  error
}

func (e *NotABackupError) Error() string {
	return fmt.Sprintf("%q is damaged, truncated or not a backup of Drover: %v; nothing was restored", e.Path, e.Err)
}

func (e *NotABackupError) Unwrap() error { return e.Err }

// RestoreOptions select a backup and a home for it.
type RestoreOptions struct {
	Home       Home
	Path       string
	Identities []age.Identity
	// Signers are CAs of the plane that the backup must be from. Without any, the backup may be
	// from anyone who could encrypt it: with a passphrase only who knows it, with an age recipient
	// everyone.
	Signers []*x509.Certificate
	KubeDir string
}

// Restore creates a new home from a backup. The home appears complete or not at all, and an
// existing one is never changed.
func Restore(ctx context.Context, o RestoreOptions) (Manifest, error) {
	if err := refuseExisting(o.Home); err != nil {
		return Manifest{}, err
	}
	binary, err := kube.Find(kube.FindOptions{Dir: o.KubeDir})
	if err != nil {
		return Manifest{}, err
	}
	f, err := os.Open(o.Path)
	if err != nil {
		return Manifest{}, fmt.Errorf("opening backup: %w", err)
	}
	defer f.Close()
	opened, err := unseal(f, o)
	if err != nil {
		return Manifest{}, err
	}
	work, err := os.MkdirTemp(filepath.Dir(o.Home.Dir), "."+filepath.Base(o.Home.Dir)+".restore-")
	if err != nil {
		return Manifest{}, fmt.Errorf("creating a temporary home: %w", err)
	}
	defer os.RemoveAll(work)
	manifest, err := unpack(opened, work, binary.Version, o.Signers)
	if err != nil {
		var refused *VersionRefusedError
		if errors.As(err, &refused) {
			return manifest, err
		}
		if errors.Is(err, ErrForeignBackup) {
			return manifest, fmt.Errorf("verifying %q: %w; nothing was restored", o.Path, err)
		}
		return manifest, &NotABackupError{Path: o.Path, Err: err}
	}
	if err := restoreEtcd(ctx, binary, work, RevisionsAhead(manifest.Created, time.Now())); err != nil {
		return manifest, err
	}
	return manifest, takePlace(work, o.Home)
}

func refuseExisting(h Home) error {
	entries, err := os.ReadDir(h.Dir)
	if err != nil && !os.IsNotExist(err) {
		return fmt.Errorf("reading home %q: %w", h.Dir, err)
	}
	if len(entries) > 0 {
		return fmt.Errorf("home %q is not empty: choose a new --home to restore into", h.Dir)
	}
	if err := writable(h.Dir); err != nil {
		return err
	}
	return os.MkdirAll(filepath.Dir(h.Dir), 0o700)
}

// unseal decrypts a backup. Age authenticates each block as it is read, so the output is either
// authentic or an error.
func unseal(f io.Reader, o RestoreOptions) (io.Reader, error) {
	plain, err := age.Decrypt(f, o.Identities...)
	var noMatch *age.NoIdentityMatchError
	if errors.As(err, &noMatch) {
		return nil, fmt.Errorf("decrypting %q: wrong passphrase or identity; nothing was restored", o.Path)
	}
	if err != nil {
		return nil, &NotABackupError{Path: o.Path, Err: err}
	}
	return plain, nil
}

func unpack(r io.Reader, dir, kubernetes string, signers []*x509.Certificate) (Manifest, error) {
	packed, err := zstd.NewReader(r)
	if err != nil {
		return Manifest{}, err
	}
	defer packed.Close()
	archive := tar.NewReader(packed)
	m, err := readManifest(archive, signers)
	if err != nil {
		return m, err
	}
	if err := m.check(kubernetes); err != nil {
		return m, err
	}
	for _, want := range m.Files {
		if err := unpackFile(archive, dir, want); err != nil {
			return m, err
		}
	}
	if _, err := archive.Next(); !errors.Is(err, io.EOF) {
		return m, errors.Join(errors.New("data after the last file of the manifest"), err)
	}
	// Only the end of the stream proves that it is complete.
	_, err = io.Copy(io.Discard, packed)
	return m, err
}

func readManifest(archive *tar.Reader, signers []*x509.Certificate) (Manifest, error) {
	var m Manifest
	header, err := archive.Next()
	if err != nil {
		return m, err
	}
	if header.Name != manifestName || header.Size > manifestLimit {
		return m, fmt.Errorf("first entry is %q, not the manifest", header.Name)
	}
	text, err := io.ReadAll(archive)
	if err != nil {
		return m, err
	}
	if err := json.Unmarshal(text, &m); err != nil {
		return m, err
	}
	if m.Format > backupFormat {
		return m, nil // It is rejected by its format.
	}
	return m, verifyManifest(archive, m, text, signers)
}

// VersionRefusedError means that a backup is intact but written by a newer version.
type VersionRefusedError struct{ Message string }

func (e *VersionRefusedError) Error() string { return e.Message }

// check rejects a backup that this Drover can't serve.
func (m Manifest) check(kubernetes string) error {
	if m.Format > backupFormat || m.HomeFormat > homeFormat {
		return &VersionRefusedError{fmt.Sprintf("the backup has format %[2]d of Drover %[1]s, but this Drover %[3]s supports formats up to %[4]d: restore it with that Drover; nothing was restored",
			m.Drover, m.Format, version.Get().Version, backupFormat)}
	}
	if err := kubernetesStep(m.Kubernetes, kubernetes); err != nil {
		return &VersionRefusedError{fmt.Sprintf("using the backup: %v; nothing was restored", err)}
	}
	for _, f := range m.Files {
		if !m.allowed(f.Name) {
			return fmt.Errorf("manifest lists %q, which is not a file of a backup", f.Name)
		}
	}
	return nil
}

func unpackFile(archive *tar.Reader, dir string, want ManifestFile) error {
	header, err := archive.Next()
	if err != nil {
		return fmt.Errorf("reading %q: %w", want.Name, err)
	}
	if header.Name != want.Name || header.Size != want.Size || header.Typeflag != tar.TypeReg {
		return fmt.Errorf("found %q of %d bytes where the manifest lists %q of %d", header.Name, header.Size, want.Name, want.Size)
	}
	path := filepath.Join(dir, want.Name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	out, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	sum := sha256.New()
	_, err = io.CopyN(io.MultiWriter(out, sum), archive, want.Size)
	if err := errors.Join(err, out.Sync(), out.Close()); err != nil {
		return fmt.Errorf("reading %q: %w", want.Name, err)
	}
	if hex.EncodeToString(sum.Sum(nil)) != want.SHA256 {
		return fmt.Errorf("wrong checksum of %q", want.Name)
	}
	return nil
}

// Revisions that are added to those of a restored etcd.
const (
	// minRevisionsAhead is more than a plane writes in years, and far below the largest revision.
	minRevisionsAhead = 1_000_000_000
	// revisionsPerSecond is more than a plane can write.
	revisionsPerSecond = 10_000
)

// RevisionsAhead returns by how much a restored etcd begins after the revision of its backup. The
// plane may have issued versions of objects after the backup, and a client that knows one must not
// find another object under it. The same backup may be restored again, so that a later restore
// begins after everything that an earlier one can have written.
func RevisionsAhead(created, now time.Time) int64 {
	return minRevisionsAhead + max(0, int64(now.Sub(created)/time.Second))*revisionsPerSecond
}

// restoreEtcd creates a data directory from the snapshot, with revisions that are ahead of it, and
// verifies the snapshot's checksum.
func restoreEtcd(ctx context.Context, binary kube.Binary, dir string, ahead int64) error {
	snapshot := filepath.Join(dir, snapshotName)
	out, err := binary.Command(ctx, "etcdutl", "snapshot", "restore", snapshot,
		"--data-dir", filepath.Join(dir, "etcd"), "--name", "drover",
		"--initial-cluster", "drover=https://127.0.0.1:2380", "--initial-advertise-peer-urls", "https://127.0.0.1:2380",
		"--bump-revision", strconv.FormatInt(ahead, 10), "--mark-compacted").CombinedOutput()
	if err != nil {
		return fmt.Errorf("restoring the etcd snapshot: %w: %s", err, strings.TrimSpace(string(out)))
	}
	return os.Remove(snapshot)
}

func takePlace(work string, h Home) error {
	if err := os.Remove(h.Dir); err != nil && !os.IsNotExist(err) {
		return fmt.Errorf("replacing the empty home %q: %w", h.Dir, err)
	}
	if err := os.Rename(work, h.Dir); err != nil {
		return fmt.Errorf("moving the restored home into place: %w", err)
	}
	return atomicfile.SyncDir(filepath.Dir(h.Dir))
}
