package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/metal"
	"github.com/drover-dev/drover/internal/model/spec"
	"github.com/drover-dev/drover/internal/operate/inspect"
	"github.com/drover-dev/drover/internal/operate/lifecycle/workflow"
	"github.com/drover-dev/drover/internal/plane"
)

// Management is a management cluster. Its objects are on itself, but while it is made, upgraded or deleted they are on a plane of this
// machine, the bootstrap:
//
//	create    bootstrap ──▶ itself
//	upgrade   itself ──▶ bootstrap ──▶ itself
//	delete    itself ──▶ bootstrap
type Management struct {
	Options

	Config *spec.Config
	// Own is the kubeconfig of the cluster itself, where that is known already.
	Own string
	// Bootstrap is the home of the plane on this machine.
	Bootstrap plane.Home
	// Metal is the home of the machines of this host.
	Metal metal.Home
	// Image is Drover's image for machines that are not of this host; empty for those that are.
	Image string
	// Undo is for what a creation that did not end well has made: if that is nothing, nothing is to be done.
	Undo bool

	differences []Difference
	// newborn means that Drover comes to the cluster for the first time.
	newborn bool
}

// BootstrapHome is where the plane for a management cluster is kept while there is one.
func BootstrapHome(cluster string) plane.Home {
	return plane.Home{Dir: filepath.Join(plane.DefaultHome()+"-bootstrap", cluster)}
}

// plan completes the plan of a command.
func (m *Management) plan(verb workflow.Verb, phases ...workflow.Phase) (*workflow.Plan, error) {
	plan, err := workflow.New(workflow.Command{Verb: verb}, m.Config.Cluster.Name, phases...)
	if err != nil {
		return nil, err
	}
	plan.Again = m.Again
	if verb != workflow.Delete { // Whatever the spec is by now, the cluster goes.
		plan.Fingerprint, err = fingerprint(m.Config)
	}
	return plan, err
}

func (m *Management) files() Files { return Files{Dir: m.Dir, Cluster: m.Config.Cluster.Name} }

// own is how to reach the cluster itself.
func (m *Management) own() (*rest.Config, error) {
	file := m.Own
	if file == "" {
		file = m.files().Kubeconfig()
	}
	if _, err := os.Stat(file); err != nil {
		return nil, fmt.Errorf("the kubeconfig of cluster %q can't be read: %w: name it with --kubeconfig", m.Config.Cluster.Name, err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", file)
	if err != nil {
		return nil, fmt.Errorf("reading kubeconfig %q: %w", file, err)
	}
	config.QPS = -1
	return config, nil
}

// on is the cluster where its objects are reached over a connection.
func (m *Management) on(config *rest.Config, from string) *Workload {
	o := m.Options
	o.Kubeconfig = from
	return &Workload{Options: o, Config: m.Config, REST: config}
}

// itself is the cluster with its objects on itself, which may not answer.
func (m *Management) itself() (*Workload, error) {
	config, err := m.own()
	if err != nil {
		return nil, err
	}
	return m.on(config, "its kubeconfig"), nil
}

// onItself is the same with a connection.
func (m *Management) onItself(ctx context.Context) (*Workload, error) {
	w, err := m.itself()
	if err != nil {
		return nil, err
	}
	if err := w.connect(ctx); err != nil {
		return nil, err
	}
	return w, nil
}

// home finds the side that has the cluster's objects. It may be neither, which is no error.
func (m *Management) home(ctx context.Context, p *workflow.Progress) (*Workload, *anywherev1.Cluster, error) {
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
	bootstrap, bootErr := m.onBootstrap(ctx, p)
	if bootErr != nil {
		return nil, nil, errors.Join(err, bootErr)
	}
	cluster, findErr := bootstrap.plane.Find(ctx, m.Config.Cluster.Namespace, m.Config.Cluster.Name)
	switch {
	case !errors.As(findErr, &found):
		return bootstrap, cluster, findErr
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil, nil // It never came so far that it could have had its objects.
	}
	return nil, nil, err // If it does not answer, nobody knows.
}
