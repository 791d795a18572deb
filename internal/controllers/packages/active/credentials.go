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
	"github.com/drover-dev/drover/internal/registry/artifact"
)

const (
	// CloudSecret is copied as it is.
	CloudSecret = "aws-secret"
	// madeLabel, on a Secret here, says that it is made and removed by this controller.
	madeLabel = "packages.eks.amazonaws.com/made-from-mirror-secret"
	// copyLabel, on a Secret of a cluster, says the same, and for which cluster: the management plane can be one itself.
	copyLabel = "packages.eks.amazonaws.com/credentials-of"
	// stampAnnotation says which edition of a Secret a copy is of.
	stampAnnotation = "packages.eks.amazonaws.com/copy-of"
	// settle is how long a watch may lag behind what was written.
	settle = 5 * time.Second
	// defaultWayOut is how long a cluster may keep a PackageBundleController from being deleted.
	defaultWayOut = 10 * time.Minute
)

// credentials are what a reconcile found out about them.
type credentials struct {
	// namespaces on the cluster have packages in them.
	namespaces map[string]bool
	// mirror is nil if there is none, or if it can't be read, and then invalid says why.
	mirror  *mirror.Mirror
	invalid error
	access  map[string]artifact.Access
	// made is what is here, and foreign says that somebody else made it.
	made    *corev1.Secret
	foreign bool

	// sources are the Secrets to be copied, by their names on the cluster.
	sources map[string]*corev1.Secret
	plan    plan
	// unseen says that the cluster has not told yet what is there.
	unseen bool
	failed error

	withdrawn bool
	wayOut    time.Duration
	after     time.Duration
}

// any says that there is something to be told about credentials.
func (c *credentials) any() bool {
	return c.mirror != nil || c.invalid != nil || len(c.sources) > 0 || c.failed != nil
}

func (v *visit) observeCredentials(ctx context.Context, f *facts, known *knowledge) error {
	c := &f.credentials
	c.wayOut = v.WayOut
	if c.wayOut == 0 {
		c.wayOut = defaultWayOut
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

// observeMirror reads what the user says about a mirror, for the cluster or for all, and what was made of it.
func (v *visit) observeMirror(ctx context.Context, f *facts) error {
	c := &f.credentials
	c.sources = map[string]*corev1.Secret{}
	own := packagesv1.NamespacePrefix + f.name
	said, err := v.Secrets.Get(ctx, client.ObjectKey{Namespace: own, Name: mirror.Secret})
	if err == nil && said == nil {
		said, err = v.Secrets.Get(ctx, client.ObjectKey{Namespace: packagesv1.Namespace, Name: mirror.Secret})
	}
	if err != nil {
		return err
	}
	if said != nil {
		host, _ := v.Source.Host(v.object.Spec.Registry())
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
	c.foreign = c.made != nil && c.made.Labels[madeLabel] == ""
	cloud, err := v.Secrets.Get(ctx, client.ObjectKey{Namespace: packagesv1.Namespace, Name: CloudSecret})
	if cloud != nil {
		c.sources[CloudSecret] = cloud
	}
	return err
}

// stamp names an edition of a Secret without telling anything of what is in it.
func stamp(s *corev1.Secret) string { return string(s.UID) + "/" + s.ResourceVersion }

// local says what to do with the Secret here.
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

// makeLocal does it.
func (v *visit) makeLocal(ctx context.Context, c *credentials) error {
	wanted := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: packagesv1.NamespacePrefix + v.object.Name, Name: mirror.Credentials, Labels: map[string]string{madeLabel: "true"},
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
		return nil // the watch will tell
	}
	if err != nil {
		return fmt.Errorf("writing Secret %s/%s: %w", wanted.Namespace, wanted.Name, err)
	}
	copiedTotal.WithLabelValues("here", string(action)).Inc()
	return nil
}

// wanted are the copies that should be on the cluster: credentials for images in all namespaces with packages in them, and those for the
// cloud in one place if there are any packages.
func (c *credentials) wanted() map[spot]string {
	out := map[spot]string{}
	if len(c.namespaces) == 0 {
		return out
	}
	if s := c.sources[mirror.Credentials]; s != nil {
		for namespace := range c.namespaces {
			out[spot{namespace, mirror.Credentials}] = stamp(s)
		}
	}
	if s := c.sources[CloudSecret]; s != nil {
		out[spot{packagesv1.Namespace, CloudSecret}] = stamp(s)
	}
	return out
}

// spot is where a copy is on a cluster.
type spot struct{ namespace, name string }

func (s spot) String() string { return s.namespace + "/" + s.name }

func sorted[V any](in map[spot]V) []spot {
	return slices.SortedFunc(maps.Keys(in), func(a, b spot) int { return compare(a.String(), b.String()) })
}
