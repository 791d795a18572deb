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
	"github.com/drover-dev/drover/internal/operate/lifecycle/workflow"
)

// Files are what is written about a cluster, in a directory of its name.
type Files struct{ Dir, Cluster string }

// Kubeconfig is the way into the cluster, for its owner only.
func (f Files) Kubeconfig() string { return f.path(f.Cluster + "-eks-a-cluster.kubeconfig") }

// Spec is the spec that the cluster was last brought to, with all defaults.
func (f Files) Spec() string { return f.path(f.Cluster + "-eks-a-cluster.yaml") }

// Record is where an unfinished run is recorded.
func (f Files) Record() workflow.Record {
	return workflow.Record{Dir: f.path("generated"), Cluster: f.Cluster}
}

func (f Files) path(name string) string { return filepath.Join(f.Dir, f.Cluster, name) }

func (f Files) write(path string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("making a place for %q: %w", path, err)
	}
	if err := atomicfile.Sweep(path); err != nil {
		return err
	}
	return atomicfile.Write(path, data, 0o600)
}

// writeSpec writes what the cluster was brought to.
func (f Files) writeSpec(c *spec.Config) error {
	data, err := spec.Marshal(c)
	if err != nil {
		return fmt.Errorf("writing the spec of cluster %q: %w", f.Cluster, err)
	}
	return f.write(f.Spec(), data)
}

// removeKubeconfig removes a way into a cluster that is gone.
func (f Files) removeKubeconfig() error {
	if err := os.Remove(f.Kubeconfig()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return atomicfile.Sweep(f.Kubeconfig())
}

// fingerprint stands for the content of a spec, however it is written.
func fingerprint(c *spec.Config) (string, error) {
	data, err := spec.Marshal(c)
	if err != nil {
		return "", fmt.Errorf("encoding the spec: %w", err)
	}
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:]), nil
}
