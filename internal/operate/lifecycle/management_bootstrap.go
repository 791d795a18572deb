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
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/config"
	"github.com/drover-dev/drover/internal/base/atomicfile"
	"github.com/drover-dev/drover/internal/metal/access"
	"github.com/drover-dev/drover/internal/metal/service"
	"github.com/drover-dev/drover/internal/operate/bootstrap"
	"github.com/drover-dev/drover/internal/operate/kubeconfig"
	"github.com/drover-dev/drover/internal/operate/lifecycle/phase"
	"github.com/drover-dev/drover/internal/plane"
)

// Lines of more than one plan.
const (
	movesToBootstrap = "moves the cluster's objects to the bootstrap plane"
	movesBack        = "moves the cluster's objects back"
	upgradesDrover   = "upgrades Drover on the cluster to this version"
	pausesOthers     = "pauses the workload clusters, which keep running"
	resumesOthers    = "resumes the clusters that were paused"
)

func (m *Management) startsBootstrap() []string {
	return []string{"starts a bootstrap plane in " + m.Bootstrap.Dir}
}

func (m *Management) removesBootstrap() []string { return []string{"removes " + m.Bootstrap.Dir} }

// hasBootstrap reports whether there is a bootstrap plane for the cluster, running or not.
func (m *Management) hasBootstrap() bool {
	_, err := m.Bootstrap.ReadMeta()
	return err == nil
}

// bootstrapOptions returns how the bootstrap plane is started.
func (m *Management) bootstrapOptions(p *phase.Progress) plane.Options {
	o := plane.Options{Home: m.Bootstrap, Brief: true, GitOps: ptr.To(false), Progress: func(e plane.Event) {
		if e.Status == plane.StageStarted {
			p.Waiting("Starting the bootstrap plane: %s", e.Stage)
		}
	}}
	// Whatever the environment says, a cluster on this host needs its machines.
	o.Flags = []string{"--metal", "auto"}
	if m.Config.Packet != nil {
		o.Flags = []string{"--metal", "none"} // Its machines are elsewhere.
	}
	return o
}

// startBootstrap starts the bootstrap plane unless it runs, and writes the credentials for
// machines.
func (m *Management) startBootstrap(ctx context.Context, p *phase.Progress) error {
	w, err := m.onBootstrap(ctx, p)
	if err != nil {
		return err
	}
	if err := m.writeRegistry(ctx, w.plane.Client); err != nil {
		return err
	}
	err = m.writeCredentials(ctx, w.plane.Client)
	if errors.Is(err, errNoCredentials) {
		return nil // A creation is rejected without; otherwise they move along with the cluster.
	}
	return err
}

// onBootstrap returns the cluster with its objects on the bootstrap plane, connected. It starts the
// plane unless it runs: this machine may have been restarted.
func (m *Management) onBootstrap(ctx context.Context, p *phase.Progress) (*Workload, error) {
	if err := os.MkdirAll(filepath.Dir(m.Bootstrap.Dir), 0o700); err != nil {
		return nil, fmt.Errorf("creating the directory of the bootstrap plane: %w", err)
	}
	o := m.bootstrapOptions(p)
	remove, err := m.shareKey(ctx, &o)
	if err != nil {
		return nil, err
	}
	defer remove()
	if err := plane.Launch(ctx, o); err != nil && !errors.Is(err, plane.ErrRunning) {
		return nil, fmt.Errorf("starting the bootstrap plane: %w", err)
	}
	connection, err := kubeconfig.Connect(m.Bootstrap.Kubeconfig())
	if err != nil {
		return nil, fmt.Errorf("connecting to the bootstrap plane: %w", err)
	}
	connection.QPS = -1
	w := m.clusterOn(connection, m.Bootstrap.Kubeconfig())
	w.onBootstrap = true
	if err := w.connect(ctx); err != nil {
		return nil, err
	}
	return w, nil
}

// shareKey gives a new bootstrap plane the key with which the cluster signs bundles of packages,
// because either accepts only bundles of its own key. The caller removes the file with remove once
// the plane has read it.
func (m *Management) shareKey(ctx context.Context, o *plane.Options) (remove func(), err error) {
	remove = func() {}
	if m.recovers && exists(m.bundleKey) {
		o.BundleKey = m.bundleKey // Restored bundles are signed with it.
		return remove, nil
	}
	if m.firstInstall || exists(m.Bootstrap.BundleKey()) {
		return remove, nil
	}
	itself, err := m.onItself(ctx)
	if errors.Is(err, fs.ErrNotExist) {
		return remove, nil // The cluster never got that far.
	}
	if err != nil {
		return remove, err
	}
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: config.Namespace, Name: config.BundleKeySecret}
	if err := itself.plane.Client.Get(ctx, key, secret); err != nil || len(secret.Data[config.BundleKeyFile]) == 0 {
		return remove, client.IgnoreNotFound(err)
	}
	o.BundleKey = m.sharedKey()
	remove = func() { _ = os.Remove(m.sharedKey()) }
	return remove, atomicfile.Write(o.BundleKey, secret.Data[config.BundleKeyFile], 0o600)
}

// sharedKey returns the file of the cluster's key for a plane that starts.
func (m *Management) sharedKey() string { return m.Bootstrap.Dir + ".key" }

// deleteBootstrap deletes the bootstrap plane. Machines stay.
func (m *Management) deleteBootstrap(ctx context.Context, _ *phase.Progress) error {
	_ = os.Remove(m.sharedKey()) // A killed command did not remove it.
	// The directory, because an earlier run may have removed a part of the plane.
	if !exists(m.Bootstrap.Dir) {
		return phase.Skip("there is no bootstrap plane")
	}
	if err := plane.Discard(ctx, m.Bootstrap); err != nil {
		return err
	}
	_ = os.Remove(filepath.Dir(m.Bootstrap.Dir)) // Other clusters may have theirs in it.
	return nil
}

// errNoCredentials means that the environment has no credentials for machines.
var errNoCredentials = errors.New("no credentials for machines: set " + access.TokenKey + " and " + access.URLKey + " in the environment")

// credentials returns the Secret with the credentials for the cluster's machines.
func (m *Management) credentials() (*corev1.Secret, error) {
	if m.Config.Packet == nil {
		local, err := bootstrap.ReadMetal(m.Metal)
		if err != nil {
			return nil, err
		}
		return local.Secret(anywherev1.SystemNamespace, anywherev1.LocalCredentials), nil
	}
	token := os.Getenv(access.TokenKey)
	if token == "" {
		return nil, errNoCredentials
	}
	data := access.Credentials{Token: token, URL: os.Getenv(access.URLKey), CA: os.Getenv(access.CAKey)}.Data()
	data[bootstrap.ProjectKey] = []byte(m.Config.Packet.Spec.ProjectID)
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: anywherev1.SystemNamespace, Name: m.Config.Packet.CredentialsName(), Labels: map[string]string{anywherev1.CredentialsLabel: "true"},
		},
		Data: data,
	}, nil
}

// replaceOutdatedMetal replaces a metal service of an older version that machines reach without
// TLS, since only the address of the new one may be in credentials.
func (m *Management) replaceOutdatedMetal(ctx context.Context) error {
	if m.Config.Packet != nil {
		return nil
	}
	e, err := m.Metal.ReadEndpoint()
	if err != nil || !e.Outdated() {
		return nil //nolint:nilerr // reading the credentials reports it
	}
	if _, err := service.Ensure(ctx, m.Metal, e.Driver); err != nil {
		return fmt.Errorf("replacing the metal service of an older version: %w", err)
	}
	return nil
}

// writeCredentials writes the credentials to where the controllers read them.
func (m *Management) writeCredentials(ctx context.Context, c client.Client) error {
	_, err := m.renewCredentials(ctx, c)
	return err
}

// renewCredentials is writeCredentials, and reports whether they changed.
func (m *Management) renewCredentials(ctx context.Context, c client.Client) (changed bool, err error) {
	if err := m.replaceOutdatedMetal(ctx); err != nil {
		return false, err
	}
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

// exists reports whether there is a file.
func exists(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, fs.ErrNotExist)
}
