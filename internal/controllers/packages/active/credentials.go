package active

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/controllers/packages/mirror"
	"github.com/drover-dev/drover/internal/model/spec"
	"github.com/drover-dev/drover/internal/registry/artifact"
)

const (
	// CloudSecret is a Secret that is copied unchanged.
	CloudSecret = "aws-secret"
	// madeLabel marks local Secrets that this controller creates and deletes.
	madeLabel = "packages.eks.amazonaws.com/made-from-mirror-secret"
	// copyLabel marks copies on a cluster. Its value is the name of the cluster, because the
	// cluster may be the management cluster itself.
	copyLabel = "packages.eks.amazonaws.com/credentials-of"
	// stampAnnotation identifies the version of the Secret that was copied.
	stampAnnotation = "packages.eks.amazonaws.com/copy-of"
	// watchLag is how long a watch may lag behind a write.
	watchLag = 5 * time.Second
	// defaultDeletionTimeout is the default of Controller.DeletionTimeout.
	defaultDeletionTimeout = 10 * time.Minute
)

// credentials are the facts about credentials.
type credentials struct {
	// namespaces are the namespaces on the cluster that contain packages.
	namespaces map[string]bool
	// mirror is nil if there is none, or if it is invalid; invalid is the reason.
	mirror  *mirror.Mirror
	invalid error
	access  map[string]artifact.Access
	// made is the local Secret, and foreign is set if Drover didn't create it or its namespace.
	made    *corev1.Secret
	foreign bool

	// sources are the Secrets to copy, by their names on the cluster.
	sources map[string]*corev1.Secret
	// denied is why the cluster may not use a shared Secret, and unbound why no cluster may.
	denied, unbound string
	plan            plan
	// unseen is set until the watches of the cluster have synced.
	unseen bool
	failed error

	withdrawn       bool
	deletionTimeout time.Duration
	after           time.Duration
}

// any reports whether there are credentials to report on.
func (c *credentials) any() bool {
	return c.mirror != nil || c.invalid != nil || c.unbound != "" || len(c.sources) > 0 || c.failed != nil
}

func (v *visit) observeCredentials(ctx context.Context, f *facts, known *knowledge) error {
	c := &f.credentials
	c.deletionTimeout = v.DeletionTimeout
	if c.deletionTimeout == 0 {
		c.deletionTimeout = defaultDeletionTimeout
	}
	if err := v.observeMirror(ctx, f); err != nil {
		return err
	}
	if f.connected == nil {
		return nil
	}
	if known.copied.through == f.connected {
		c.failed, c.withdrawn = known.copied.err, known.copied.withdrawn
		if c.failed != nil {
			_, c.after = elapsed(f.now, known.copied.at, firstRetry)
		}
	}
	if f.deleting.IsZero() {
		v.observeCopies(f, known)
	}
	return nil
}

// observeMirror reads the mirror of the cluster, or the shared one, and the Secret created from it.
func (v *visit) observeMirror(ctx context.Context, f *facts) error {
	c := &f.credentials
	c.sources = map[string]*corev1.Secret{}
	own := packagesv1.NamespacePrefix + f.name
	var said *corev1.Secret
	var err error
	if !f.foreignNamespace {
		said, err = v.Secrets.Get(ctx, client.ObjectKey{Namespace: own, Name: mirror.Secret})
	}
	if err == nil && said == nil {
		said, err = v.shared(ctx, f, mirror.Secret)
	}
	if err != nil {
		return err
	}
	if said != nil {
		host, _ := v.Source.Host(v.Object.Spec.Registry())
		f.access = stamp(said)
		if c.mirror, c.invalid = mirror.Parse(said.Data, host); c.invalid != nil {
			c.invalid = fmt.Errorf("reading Secret %s/%s: %w", said.Namespace, said.Name, c.invalid)
		} else {
			c.access = c.mirror.Access()
			c.sources[mirror.Credentials] = &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{UID: said.UID, ResourceVersion: said.ResourceVersion},
				Type:       corev1.SecretTypeDockerConfigJson, Data: map[string][]byte{corev1.DockerConfigJsonKey: c.mirror.Config},
			}
		}
	}
	if c.made, err = v.Secrets.Get(ctx, client.ObjectKey{Namespace: own, Name: mirror.Credentials}); err != nil {
		return err
	}
	c.foreign = f.foreignNamespace || c.made != nil && c.made.Labels[madeLabel] == ""
	cloud, err := v.shared(ctx, f, CloudSecret)
	if cloud != nil {
		c.sources[CloudSecret] = cloud
	}
	return err
}

// shared returns a Secret that several clusters share, or nil if the cluster may not use it: its
// owner is root on the machines that get a copy.
func (v *visit) shared(ctx context.Context, f *facts, name string) (*corev1.Secret, error) {
	secret, err := v.Secrets.Get(ctx, client.ObjectKey{Namespace: packagesv1.Namespace, Name: name})
	if secret == nil || f.tenant == "" {
		return nil, err
	}
	problem := spec.DenyNamespace(secret, f.tenant)
	if problem == "" {
		return secret, err
	}
	f.credentials.denied = problem
	if !spec.IsBound(secret) {
		f.credentials.unbound = problem
	}
	return nil, err
}

// stamp identifies a version of a Secret without revealing its content.
func stamp(s *corev1.Secret) string { return string(s.UID) + "/" + s.ResourceVersion }

// local returns the action for the local Secret.
func (c *credentials) local() localAction {
	switch {
	case c.foreign, c.invalid != nil:
		return leave
	case c.mirror == nil && c.made != nil:
		return remove
	case c.mirror == nil:
		return leave
	case c.made == nil:
		return create
	case !reflect.DeepEqual(c.made.Data, c.mirror.Data()):
		return update
	default:
		return leave
	}
}

type localAction string

const (
	leave  localAction = ""
	create localAction = "create"
	update localAction = "update"
	remove localAction = "delete"
)

// applyLocal executes the action for the local Secret.
func (v *visit) applyLocal(ctx context.Context, c *credentials) error {
	wanted := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: packagesv1.NamespacePrefix + v.Object.Name, Name: mirror.Credentials, Labels: map[string]string{madeLabel: "true"},
		},
		Type: corev1.SecretTypeDockerConfigJson,
	}
	if c.mirror != nil {
		wanted.Data = c.mirror.Data()
	}
	var err error
	action := c.local()
	switch action {
	case leave:
		return nil
	case create:
		err = v.Client.Create(ctx, wanted)
	case update:
		wanted.ResourceVersion = c.made.ResourceVersion
		err = v.Client.Update(ctx, wanted)
	case remove:
		err = client.IgnoreNotFound(v.Client.Delete(ctx, c.made, client.Preconditions{UID: &c.made.UID}))
	}
	if apierrors.IsAlreadyExists(err) || apierrors.IsConflict(err) {
		return nil // the watch triggers another reconcile
	}
	if err != nil {
		return fmt.Errorf("writing Secret %s/%s: %w", wanted.Namespace, wanted.Name, err)
	}
	copiedTotal.WithLabelValues("here", string(action)).Inc()
	return nil
}

// wanted returns the copies that the cluster should have: image credentials in all namespaces with
// packages, and cloud credentials in the shared namespace if there are packages.
func (c *credentials) wanted() map[secretKey]string {
	out := map[secretKey]string{}
	if len(c.namespaces) == 0 {
		return out
	}
	if s := c.sources[mirror.Credentials]; s != nil {
		for namespace := range c.namespaces {
			out[secretKey{namespace, mirror.Credentials}] = stamp(s)
		}
	}
	if s := c.sources[CloudSecret]; s != nil {
		out[secretKey{packagesv1.Namespace, CloudSecret}] = stamp(s)
	}
	return out
}

// secretKey is the namespace and name of a copy on a cluster.
type secretKey struct{ namespace, name string }

func (s secretKey) String() string { return s.namespace + "/" + s.name }

func sorted[V any](in map[secretKey]V) []secretKey {
	return slices.SortedFunc(maps.Keys(in), func(a, b secretKey) int { return compare(a.String(), b.String()) })
}
