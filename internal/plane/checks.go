package plane

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
	utilversion "k8s.io/apimachinery/pkg/util/version"

	"github.com/drover-dev/drover/internal/kube"
)

// minFree is what a first start needs: etcd reserves 64 MiB for its log twice, and everything else
// grows slowly.
const minFree = 256 << 20

// Preflight rejects an unusable configuration before anything is changed. It returns the binary
// that the plane will run.
func Preflight(o Options) (kube.Binary, error) {
	for _, check := range []func() error{
		o.Home.Check,
		func() error { return writable(o.Home.Dir) },
		func() error { return spaceLeft(o.Home.Dir, minFree) },
		func() error { return o.Home.checkBundleKey(o.BundleKey) },
		func() error { _, err := o.findFlux(); return err },
		o.portsFree,
	} {
		if err := check(); err != nil {
			return kube.Binary{}, err
		}
	}
	binary, err := kube.Find(kube.FindOptions{Dir: o.KubeDir})
	if err != nil {
		return kube.Binary{}, err
	}
	meta, err := o.Home.ReadMeta()
	if errors.Is(err, fs.ErrNotExist) {
		return binary, nil
	}
	if err != nil {
		return kube.Binary{}, err
	}
	return binary, kubernetesStep(meta.Kubernetes, binary.Version)
}

// portsFree rejects ports in use by other programs. It waits for the children of a supervisor that
// was just killed, which still hold them.
func (o Options) portsFree() error {
	if o.Home.Running() {
		return nil
	}
	if err := o.Home.endLeftovers(); err != nil {
		return err
	}
	config, err := o.Home.readConfig()
	if err != nil {
		return err
	}
	_, err = config.complete(o)
	return err
}

// existing returns the nearest existing parent directory of path.
func existing(path string) string {
	for {
		if _, err := os.Stat(path); err == nil || path == filepath.Dir(path) {
			return path
		}
		path = filepath.Dir(path)
	}
}

func writable(dir string) error {
	parent := existing(dir)
	if info, err := os.Stat(parent); err != nil || !info.IsDir() {
		return fmt.Errorf("creating home %q: %q is not a directory: choose another --home", dir, parent)
	}
	if err := unix.Access(parent, unix.W_OK|unix.X_OK); err != nil {
		return fmt.Errorf("home %q is not writable (%q: %w): fix the permissions or choose another --home", dir, parent, err)
	}
	return nil
}

func spaceLeft(dir string, need uint64) error {
	var st unix.Statfs_t
	if err := unix.Statfs(existing(dir), &st); err != nil {
		return fmt.Errorf("reading the free space at %q: %w", dir, err)
	}
	free := st.Bavail * uint64(st.Bsize)
	if free < need {
		return fmt.Errorf("only %d MiB are free at home %q, but %d MiB are required: free some space or choose another --home", free>>20, dir, need>>20)
	}
	return nil
}

// kubernetesStep rejects version changes that Kubernetes does not support between the version that
// last wrote the data and the one that will read it.
func kubernetesStep(from, to string) error {
	was, err := utilversion.ParseSemantic(from)
	if err != nil {
		return fmt.Errorf("parsing the Kubernetes version of the home, %q: %w", from, err)
	}
	now, err := utilversion.ParseSemantic(to)
	if err != nil {
		return fmt.Errorf("parsing the version of the Kubernetes binary, %q: %w", to, err)
	}
	switch {
	case now.Major() != was.Major() || now.Minor() < was.Minor():
		return fmt.Errorf("this home was last used with Kubernetes %s and can't go back to %s: use a Drover with %s or later", from, to, from)
	case now.Minor() > was.Minor()+1:
		return fmt.Errorf("this home was last used with Kubernetes %s and can't skip a minor version to %s: use a Drover with Kubernetes %d.%d first", from, to, was.Major(), was.Minor()+1)
	}
	return nil
}
