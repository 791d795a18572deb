package lifecycle

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/config"
	"github.com/drover-dev/drover/internal/base/atomicfile"
	"github.com/drover-dev/drover/internal/metal/access"
	"github.com/drover-dev/drover/internal/operate/bootstrap"
	"github.com/drover-dev/drover/internal/operate/lifecycle/workflow"
	"github.com/drover-dev/drover/internal/plane"
)

// hasBootstrap says whether there is a plane for the cluster on this machine, running or not.
func (m *Management) hasBootstrap() bool {
	_, err := m.Bootstrap.ReadMeta()
	return err == nil
}

// bootstrapOptions are how the plane on this machine is started.
func (m *Management) bootstrapOptions(p *workflow.Progress) plane.Options {
	o := plane.Options{Home: m.Bootstrap, Brief: true, Progress: func(e plane.Event) {
		if e.Status == plane.StageStarted {
			p.Waiting("%s of the plane on this machine", e.Stage)
		}
	}}
	// Whatever the environment says: there can be no such cluster without.
	o.Flags = []string{"--metal", "auto"}
	if m.Config.Packet != nil {
		o.Flags = []string{"--metal", "none"} // its machines are elsewhere
	}
	return o
}

// startBootstrap has the plane on this machine run, with credentials for machines.
func (m *Management) startBootstrap(ctx context.Context, p *workflow.Progress) error {
	w, err := m.onBootstrap(ctx, p)
	if err != nil {
		return err
	}
	if err := m.writeRegistry(ctx, w.plane.Client); err != nil {
		return err
	}
	err = m.writeCredentials(ctx, w.plane.Client)
	if errors.Is(err, errNoCredentials) {
		return nil // A creation is refused without, and in other cases they come along with the cluster.
	}
	return err
}

// onBootstrap is the cluster with its objects on the plane of this machine, which is started if it does not run: a machine may have been
// restarted since.
func (m *Management) onBootstrap(ctx context.Context, p *workflow.Progress) (*Workload, error) {
	if err := os.MkdirAll(filepath.Dir(m.Bootstrap.Dir), 0o700); err != nil {
		return nil, fmt.Errorf("making a place for the plane on this machine: %w", err)
	}
	o := m.bootstrapOptions(p)
	forget, err := m.signAlike(ctx, &o)
	if err != nil {
		return nil, err
	}
	defer forget()
	if err := plane.Launch(ctx, o); err != nil && !errors.Is(err, plane.ErrRunning) {
		return nil, fmt.Errorf("starting a management plane on this machine: %w", err)
	}
	way, err := clientcmd.BuildConfigFromFlags("", m.Bootstrap.Kubeconfig())
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig of the plane on this machine: %w", err)
	}
	way.QPS = -1
	w := m.on(way, m.Bootstrap.Kubeconfig())
	if err := w.connect(ctx); err != nil {
		return nil, err
	}
	return w, nil
}

// signAlike has a new plane sign bundles of packages as the cluster does: either takes only those that it could have signed. What is written
// for it is to be forgotten once the plane has it.
func (m *Management) signAlike(ctx context.Context, o *plane.Options) (forget func(), err error) {
	forget = func() {}
	if m.newborn || exists(m.Bootstrap.BundleKey()) {
		return forget, nil
	}
	itself, err := m.onItself(ctx)
	if errors.Is(err, fs.ErrNotExist) {
		return forget, nil // It never came so far.
	}
	if err != nil {
		return forget, err
	}
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: config.Namespace, Name: config.BundleKeySecret}
	if err := itself.plane.Client.Get(ctx, key, secret); err != nil || len(secret.Data[config.BundleKeyFile]) == 0 {
		return forget, client.IgnoreNotFound(err)
	}
	o.BundleKey = m.lentKey()
	forget = func() { _ = os.Remove(m.lentKey()) }
	return forget, atomicfile.Write(o.BundleKey, secret.Data[config.BundleKeyFile], 0o600)
}

// lentKey is where a plane that starts finds the cluster's key.
func (m *Management) lentKey() string { return m.Bootstrap.Dir + ".key" }

// deleteBootstrap removes the plane on this machine. Machines are not its own and stay.
func (m *Management) deleteBootstrap(ctx context.Context, _ *workflow.Progress) error {
	_ = os.Remove(m.lentKey()) // A command that was killed could not.
	// Whatever is left of one: an earlier run may have removed a part.
	if !exists(m.Bootstrap.Dir) {
		return workflow.Skip("there is none")
	}
	if err := plane.Discard(ctx, m.Bootstrap); err != nil {
		return err
	}
	_ = os.Remove(filepath.Dir(m.Bootstrap.Dir)) // Others may have theirs in it.
	return nil
}

// errNoCredentials means that nobody said how to get machines.
var errNoCredentials = errors.New("there are no credentials for machines: set " + access.TokenKey + " and " + access.URLKey + " in the environment")

// credentials are those that the cluster's machines are had with, as a Secret.
func (m *Management) credentials() (*corev1.Secret, error) {
	if m.Config.Packet == nil {
		local, err := management.ReadMetal(m.Metal)
		if err != nil {
			return nil, err
		}
		return local.Secret(anywherev1.SystemNamespace, anywherev1.LocalCredentials), nil
	}
	token := os.Getenv(access.TokenKey)
	if token == "" {
		return nil, errNoCredentials
	}
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: anywherev1.SystemNamespace, Name: m.Config.Packet.CredentialsName(), Labels: map[string]string{anywherev1.CredentialsLabel: "true"},
		},
		Data: map[string][]byte{
			access.TokenKey: []byte(token), access.URLKey: []byte(os.Getenv(access.URLKey)), management.ProjectKey: []byte(m.Config.Packet.Spec.ProjectID),
		},
	}, nil
}

// writeCredentials puts the credentials where the controllers look for them.
func (m *Management) writeCredentials(ctx context.Context, c client.Client) error {
	_, err := m.renewCredentials(ctx, c)
	return err
}

// renewCredentials says whether there was anything to do.
func (m *Management) renewCredentials(ctx context.Context, c client.Client) (changed bool, err error) {
	wanted, err := m.credentials()
	if err != nil {
		return false, err
	}
	if err := ensureNamespace(ctx, c, anywherev1.SystemNamespace); err != nil {
		return false, err
	}
	live := &corev1.Secret{}
	err = c.Get(ctx, client.ObjectKeyFromObject(wanted), live)
	switch {
	case apierrors.IsNotFound(err):
		err = c.Create(ctx, wanted, client.FieldOwner(anywherev1.FieldManagerCLI))
	case err == nil && maps.EqualFunc(live.Data, wanted.Data, bytes.Equal) && live.Labels[anywherev1.CredentialsLabel] == "true":
		return false, nil
	case err == nil:
		live.Data = wanted.Data
		metav1.SetMetaDataLabel(&live.ObjectMeta, anywherev1.CredentialsLabel, "true")
		err = c.Update(ctx, live, client.FieldOwner(anywherev1.FieldManagerCLI))
	}
	if err != nil {
		return false, fmt.Errorf("writing the credentials for machines: %w", err)
	}
	return true, nil
}

// exists tells whether there is a file.
func exists(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, fs.ErrNotExist)
}
