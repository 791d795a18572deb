package encryption

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/metadata"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/base/atrest"
	"github.com/drover-dev/drover/internal/base/text"
	"github.com/drover-dev/drover/internal/controllers/reconcile"
	"github.com/drover-dev/drover/internal/model/owner"
	"github.com/drover-dev/drover/internal/model/spec"
	"github.com/drover-dev/drover/internal/workload"
)

const (
	name = "cluster-encryption"
	// rewriteTimeout bounds the time that a cluster can occupy a worker. What was rewritten stays
	// so, and rewriting it again is cheap.
	rewriteTimeout = 10 * time.Minute
	// retryInterval is when to try an unreachable cluster again: it may be replacing a machine.
	retryInterval = 5 * time.Second
)

// Controller encrypts the Secrets of clusters with their new provider. It is not part of the
// controller of Clusters, which never waits for a workload cluster.
type Controller struct {
	Client client.Client
	// Live reads from the API server, because the data of Secrets is not cached.
	Live client.Reader
	// Metadata reads labels and annotations of Secrets from a cache. SetupWithManager sets it.
	Metadata client.Reader
	// Connect returns a client for the metadata of a cluster's objects.
	Connect func(ctx context.Context, cluster client.ObjectKey) (metadata.Interface, error)
}

// New returns a Controller for the connections of a manager.
func New(mgr ctrl.Manager, clusters *workload.Clusters) *Controller {
	return &Controller{
		Client: mgr.GetClient(), Live: mgr.GetAPIReader(),
		Connect: func(ctx context.Context, key client.ObjectKey) (metadata.Interface, error) {
			to, err := clusters.Get(ctx, key)
			if err != nil {
				return nil, err
			}
			return metadata.NewForConfigAndClient(to.Config(), to.HTTP())
		},
	}
}

// SetupWithManager adds the controller. It watches the metadata of the Secrets that hold keys, and
// Clusters that appear or are resumed.
func (c *Controller) SetupWithManager(mgr ctrl.Manager, cached cache.Cache, o controller.Options) error {
	c.Metadata = cached
	resumed := predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		was, ok := e.ObjectOld.(*anywherev1.Cluster)
		is, same := e.ObjectNew.(*anywherev1.Cluster)
		return ok && same && was.IsPaused() && !is.IsPaused()
	}}
	err := ctrl.NewControllerManagedBy(mgr).Named(name).
		WatchesRawSource(source.Kind(cached, client.Object(metadataOfSecret()), &handler.EnqueueRequestForObject{}, predicate.NewPredicateFuncs(rewriting))).
		Watches(&anywherev1.Cluster{}, handler.EnqueueRequestsFromMapFunc(c.ofCluster), builder.WithPredicates(resumed)).
		WithOptions(reconcile.NewGuard(mgr, "ClusterEncryption").Options(o)).Complete(c)
	if err != nil {
		return fmt.Errorf("creating controller %q: %w", name, err)
	}
	return nil
}

func metadataOfSecret() *metav1.PartialObjectMetadata {
	out := &metav1.PartialObjectMetadata{}
	out.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	return out
}

// rewriting reports whether the Secrets of a cluster, by the Secret with its keys, wait to be
// rewritten.
func rewriting(keys client.Object) bool {
	return keys.GetNamespace() == anywherev1.SystemNamespace && keys.GetAnnotations()[anywherev1.EncryptionStageAnnotation] == string(Rewriting)
}

// ofCluster returns the Secret with the keys of a Cluster whose Secrets wait to be rewritten.
func (c *Controller) ofCluster(ctx context.Context, cluster client.Object) []ctrl.Request {
	keys := metadataOfSecret()
	if err := c.Metadata.Get(ctx, Key(cluster.GetName()), keys); err != nil || !rewriting(keys) {
		return nil // An event of the Secret follows.
	}
	return []ctrl.Request{{NamespacedName: client.ObjectKeyFromObject(keys)}}
}

// Reconcile ends the change of a cluster whose Secrets wait to be rewritten.
func (c *Controller) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	secret := &corev1.Secret{}
	if err := c.Live.Get(ctx, request.NamespacedName, secret); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	state, err := Decode(secret.Data)
	if err != nil || state.Stage != Rewriting {
		return ctrl.Result{}, nil //nolint:nilerr // The condition of the Cluster reports it.
	}
	cluster, err := c.clusterOf(ctx, secret)
	if err != nil {
		return ctrl.Result{}, err
	}
	if cluster == nil || cluster.IsPaused() { // A move brings it, or resumes it, which is an event.
		return ctrl.Result{}, nil
	}
	return c.finish(ctx, secret, state, cluster)
}

// finish rewrites all Secrets of a cluster and removes the old provider.
func (c *Controller) finish(ctx context.Context, secret *corev1.Secret, state *State, cluster *anywherev1.Cluster) (ctrl.Result, error) {
	used, err := c.used(ctx, cluster)
	if err != nil || state.Older(used) { // The condition of the Cluster reports an outdated Secret.
		return ctrl.Result{}, err
	}
	to, err := c.Connect(ctx, client.ObjectKey{Namespace: anywherev1.SystemNamespace, Name: cluster.Name})
	if err != nil {
		ctrl.LoggerFrom(ctx).Info("Waiting for the cluster to encrypt its Secrets", "cluster", cluster.Name, "cause", err.Error())
		return ctrl.Result{RequeueAfter: reconcile.Jitter(retryInterval)}, nil
	}
	limited, cancel := context.WithTimeout(ctx, rewriteTimeout)
	defer cancel()
	count, err := atrest.Rewrite(limited, to)
	if err != nil {
		return ctrl.Result{}, errors.Join(fmt.Errorf("encrypting the Secrets of cluster %q: %w", cluster.Name, err), c.report(ctx, secret, err))
	}
	if err := state.Finish().Encode(secret, cluster, used); err != nil {
		return ctrl.Result{}, err
	}
	ctrl.LoggerFrom(ctx).Info("Encrypted all Secrets with the new key", "cluster", cluster.Name, "secrets", count)
	return reconcile.Result(client.IgnoreNotFound(c.Client.Update(ctx, secret)), 0)
}

// used returns the key of the configuration that the control plane refers to.
func (c *Controller) used(ctx context.Context, cluster *anywherev1.Cluster) (string, error) {
	k := &controlplanev1.KubeadmControlPlane{}
	err := c.Client.Get(ctx, client.ObjectKey{Namespace: anywherev1.SystemNamespace, Name: cluster.Name}, k)
	if client.IgnoreNotFound(err) != nil {
		return "", fmt.Errorf("reading the control plane of cluster %q: %w", cluster.Name, err)
	}
	_, key := Reference(k)
	return key, nil
}

// report annotates the Secret with the answer of an API server that does not let Secrets be
// written, for the condition of the Cluster. Connections that fail are only logged: the next try
// follows soon.
func (c *Controller) report(ctx context.Context, secret *corev1.Secret, cause error) error {
	var status apierrors.APIStatus
	problem := text.Truncate(cause.Error())
	if !errors.As(cause, &status) || secret.Annotations[anywherev1.EncryptionProblemAnnotation] == problem {
		return nil
	}
	metav1.SetMetaDataAnnotation(&secret.ObjectMeta, anywherev1.EncryptionProblemAnnotation, problem)
	if err := c.Client.Update(ctx, secret); client.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err) {
		return fmt.Errorf("annotating Secret %q: %w", secret.Name, err)
	}
	return nil
}

// clusterOf returns the Cluster of a Secret, or nil.
func (c *Controller) clusterOf(ctx context.Context, secret client.Object) (*anywherev1.Cluster, error) {
	labels := secret.GetLabels()
	cluster := &anywherev1.Cluster{}
	key := client.ObjectKey{Namespace: labels[anywherev1.ClusterNamespaceLabel], Name: labels[anywherev1.ClusterNameLabel]}
	if secret.GetName() != anywherev1.EncryptionSecret(key.Name) {
		return nil, nil
	}
	if err := c.Client.Get(ctx, key, cluster); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	if !owner.Owns(cluster, secret) {
		return nil, nil
	}
	cluster = cluster.DeepCopy()
	spec.DefaultCluster(cluster)
	return cluster, nil
}
