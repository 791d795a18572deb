package lifecycle

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/drover-dev/drover/internal/base/atomicfile"
	"github.com/drover-dev/drover/internal/model/spec"
	"github.com/drover-dev/drover/internal/operate/lifecycle/phase"
)

// Files are the files about a cluster, in a directory of its name.
type Files struct{ Dir, Cluster string }

// Kubeconfig returns the file of the cluster's kubeconfig, which only its owner can read.
func (f Files) Kubeconfig() string { return f.path(f.Cluster + "-eks-a-cluster.kubeconfig") }

// Spec returns the file of the spec that was last applied, with all defaults.
func (f Files) Spec() string { return f.path(f.Cluster + "-eks-a-cluster.yaml") }

// Lost returns the file of the kubeconfig of a management cluster that is being recovered, which
// has the CA that signed its backups.
func (f Files) Lost() string { return f.path(f.Cluster + "-lost.kubeconfig") }

// RecoveryKey returns the file of the key that opens the backups of a management cluster.
func (f Files) RecoveryKey() string { return f.path(f.Cluster + "-recovery.key") }

// Record returns where an unfinished run is recorded.
func (f Files) Record() phase.Record {
	return phase.Record{Dir: f.path("generated"), Cluster: f.Cluster}
}

func (f Files) path(name string) string { return filepath.Join(f.Dir, f.Cluster, name) }

func (f Files) write(path string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("creating the directory of %q: %w", path, err)
	}
	if err := atomicfile.Sweep(path); err != nil {
		return err
	}
	return atomicfile.Write(path, data, 0o600)
}

// writeSpec writes the spec that was applied.
func (f Files) writeSpec(c *spec.Config) error {
	data, err := spec.Marshal(c)
	if err != nil {
		return fmt.Errorf("writing the spec of cluster %q: %w", f.Cluster, err)
	}
	return f.write(f.Spec(), data)
}

// removeKubeconfig removes the kubeconfig of a cluster that is gone.
func (f Files) removeKubeconfig() error {
	if err := os.Remove(f.Kubeconfig()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return atomicfile.Sweep(f.Kubeconfig())
}

// fingerprint identifies the content of a spec, whatever its formatting.
func fingerprint(c *spec.Config) (string, error) {
	data, err := spec.Marshal(c)
	if err != nil {
		return "", fmt.Errorf("encoding the spec: %w", err)
	}
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:]), nil
}
