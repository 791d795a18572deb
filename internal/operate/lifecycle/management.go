package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"k8s.io/client-go/rest"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/metal"
	"github.com/drover-dev/drover/internal/model/spec"
	"github.com/drover-dev/drover/internal/operate/bootstrap"
	"github.com/drover-dev/drover/internal/operate/inspect"
	"github.com/drover-dev/drover/internal/operate/kubeconfig"
	"github.com/drover-dev/drover/internal/operate/lifecycle/phase"
	"github.com/drover-dev/drover/internal/plane"
)

// Management plans changes of a management cluster. Its objects are on itself, except while it is
// created, upgraded or deleted. Then they are on a bootstrap plane on this machine:
//
//	create    bootstrap ──▶ itself
//	upgrade   itself ──▶ bootstrap ──▶ itself
//	delete    itself ──▶ bootstrap
type Management struct {
	Options

	Config *spec.Config
	// Own is the file of the cluster's own kubeconfig, if the user named one.
	Own string
	// Bootstrap is the home of the bootstrap plane.
	Bootstrap plane.Home
	// Metal is the home of the machines on this host.
	Metal metal.Home
	// Image is Drover's image for machines that are not on this host; empty for those that are.
	Image string

	differences []Difference
	// runsGitOps means that Drover on the cluster manages clusters through Git, whether or not the
	// cluster's own spec is in Git.
	runsGitOps bool
	// flux are the images of Flux, once they are known.
	flux *bootstrap.FluxImages
	// bundleKey is the file with the key that signed the bundles that move to the cluster; by default
	// that of the bootstrap plane.
	bundleKey string
	// registry is the loopback address, host:port, that add-ons on the cluster refer to; by default
	// that of the manager.
	registry string
	// firstInstall means that Drover is installed on the cluster for the first time.
	firstInstall bool
	// recovers means that the cluster replaces one that is lost.
	recovers bool
}

// BootstrapHome returns the home of the bootstrap plane of a management cluster.
func BootstrapHome(cluster string) plane.Home {
	return plane.Home{Dir: filepath.Join(plane.DefaultHome()+"-bootstrap", cluster)}
}

func (m *Management) files() Files { return Files{Dir: m.Dir, Cluster: m.Config.Cluster.Name} }

// own returns the connection to the cluster itself.
func (m *Management) own() (*rest.Config, error) {
	file := m.Own
	if file == "" {
		file = m.files().Kubeconfig()
	}
	config, err := kubeconfig.Connect(file)
	if err != nil {
		return nil, fmt.Errorf("connecting to cluster %q: %w: name its kubeconfig with --kubeconfig", m.Config.Cluster.Name, err)
	}
	config.QPS = -1
	return config, nil
}

// clusterOn returns the cluster with its objects on the other end of a connection.
func (m *Management) clusterOn(config *rest.Config, from string) *Workload {
	o := m.Options
	o.Kubeconfig = from
	return &Workload{Options: o, Config: m.Config, REST: config}
}

// ownCluster returns the cluster with its objects on itself, without connecting.
func (m *Management) ownCluster() (*Workload, error) {
	config, err := m.own()
	if err != nil {
		return nil, err
	}
	return m.clusterOn(config, "its kubeconfig"), nil
}

// onItself returns the cluster with its objects on itself, connected.
func (m *Management) onItself(ctx context.Context) (*Workload, error) {
	w, err := m.ownCluster()
	if err != nil {
		return nil, err
	}
	if err := w.connect(ctx); err != nil {
		return nil, err
	}
	return w, nil
}

// home finds the side that has the cluster's objects. It returns nil if neither has.
func (m *Management) home(ctx context.Context, p *phase.Progress) (*Workload, *anywherev1.Cluster, error) {
	var found *inspect.NotFoundError
	itself, err := m.onItself(ctx)
	if err == nil {
		cluster, findErr := itself.plane.Find(ctx, m.Config.Cluster.Namespace, m.Config.Cluster.Name)
		if findErr == nil {
			return itself, cluster, nil
		}
		if !errors.As(findErr, &found) {
			return nil, nil, findErr
		}
	}
	if !m.hasBootstrap() {
		return nil, nil, err
	}
	target, bootErr := m.onBootstrap(ctx, p)
	if bootErr != nil {
		return nil, nil, errors.Join(err, bootErr)
	}
	cluster, findErr := target.plane.Find(ctx, m.Config.Cluster.Namespace, m.Config.Cluster.Name)
	switch {
	case !errors.As(findErr, &found):
		return target, cluster, findErr
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil, nil // The cluster never got as far as having its own objects.
	}
	return nil, nil, err // Without an answer from it, nobody knows.
}
