package admission

import (
	"context"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/controllers/clusters/cluster"
	"github.com/drover-dev/drover/internal/controllers/clusters/records"
	"github.com/drover-dev/drover/internal/model/audit"
	"github.com/drover-dev/drover/internal/model/spec"
)

// clusterRules are those for Clusters.
type clusterRules struct {
	Options

	// reader reads from the manager's cache, live from the API server.
	reader, live   client.Reader
	mayImpersonate func(ctx context.Context, user authenticationv1.UserInfo, as string) (bool, error)
	records        *records.Recorder
	now            func() time.Time
}

// Default fills in what is left out, and notes who made the Cluster and who asks for what.
func (r *clusterRules) Default(ctx context.Context, c *anywherev1.Cluster) error {
	if c.DeletionTimestamp.IsZero() {
		spec.DefaultCluster(c)
	}
	request, err := admission.RequestFromContext(ctx)
	if err != nil {
		return err
	}
	was, err := former(request)
	if err != nil {
		return err
	}
	moved := false
	if arrives(was, c) {
		if moved, err = r.moves(ctx, c, request.UserInfo); err != nil {
			return err
		}
	}
	if err := r.sign(ctx, was, c, request.UserInfo); err != nil {
		return err
	}
	if moved {
		delete(c.Annotations, audit.Annotation)
		return nil
	}
	return audit.Stamp(was, c, request.UserInfo, r.now())
}

// ValidateCreate checks a new object. One that is paused is on its way from elsewhere, and was good there.
func (r *clusterRules) ValidateCreate(ctx context.Context, c *anywherev1.Cluster) (admission.Warnings, error) {
	if !c.IsPaused() && c.IsSelfManaged() && !c.IsManagedByCLI() {
		return nil, refusal("creating new cluster on existing cluster is not supported for self managed clusters")
	}
	if !c.IsPaused() && len(c.Spec.EtcdEncryption) > 0 {
		return nil, invalid("spec.etcdEncryption: etcdEncryption is not supported during cluster creation")
	}
	if err := r.free(ctx, c); err != nil {
		return nil, err
	}
	return nil, r.content(ctx, c)
}

// ValidateUpdate checks a changed object.
func (r *clusterRules) ValidateUpdate(ctx context.Context, was, is *anywherev1.Cluster) (admission.Warnings, error) {
	if !is.DeletionTimestamp.IsZero() || equality.Semantic.DeepEqual(was.Spec, is.Spec) {
		return nil, nil
	}
	if wrong := spec.ValidateUpdate(was, is); len(wrong) > 0 {
		return nil, invalid(wrong.Error())
	}
	return nil, r.content(ctx, is)
}

// ValidateDelete puts on record who deletes a Cluster that may be deleted.
func (r *clusterRules) ValidateDelete(ctx context.Context, c *anywherev1.Cluster) (admission.Warnings, error) {
	if err := r.deletable(ctx, c); err != nil {
		return nil, err
	}
	request, err := admission.RequestFromContext(ctx)
	if err != nil || ptr.Deref(request.DryRun, false) || !c.DeletionTimestamp.IsZero() {
		return nil, err
	}
	if leaves(c) {
		if moved, err := r.moves(ctx, c, request.UserInfo); err != nil || moved {
			return nil, err
		}
	}
	return nil, r.records.RecordDeletion(ctx, c, request.UserInfo, r.now())
}

// deletable keeps management clusters, which are removed by a command that first makes room for what they hold.
func (r *clusterRules) deletable(ctx context.Context, c *anywherev1.Cluster) error {
	if c.IsManaged() || c.IsPaused() {
		return nil
	}
	names, err := cluster.Workloads(ctx, r.reader, c)
	switch {
	case err != nil:
		return err
	case len(names) > 0:
		return refusal("deleting management cluster %s while workload clusters are managed by it is not supported: delete %s first", c.Name, brief(names))
	case !c.IsManagedByCLI():
		return refusal("deleting self-managed clusters is not supported")
	}
	return nil
}

// content is what can be said of a spec, and what it means for this management plane.
func (r *clusterRules) content(ctx context.Context, c *anywherev1.Cluster) error {
	wrong := spec.ValidateCluster(c)
	wrong = append(wrong, r.shipped(c)...)
	if len(wrong) > 0 {
		return invalid(wrong.Error())
	}
	return r.notNewer(ctx, c)
}

// shipped says which versions of Kubernetes can't be had.
func (r *clusterRules) shipped(c *anywherev1.Cluster) spec.Violations {
	var wrong spec.Violations
	check := func(path, minor string) {
		if minor == "" {
			return
		}
		if _, err := r.Version(minor); err != nil {
			wrong = append(wrong, spec.Violation{Path: "Cluster/" + c.Name + ": " + path, Problem: err.Error(), Remedy: "choose one of these"})
		}
	}
	check("spec.kubernetesVersion", c.Spec.KubernetesVersion)
	for _, g := range c.Spec.WorkerNodeGroupConfigurations {
		if g.KubernetesVersion != nil {
			check("spec.workerNodeGroupConfigurations["+g.Name+"].kubernetesVersion", *g.KubernetesVersion)
		}
	}
	return wrong
}

// free says whether nobody has the name: machines and credentials of all clusters are in one namespace.
func (r *clusterRules) free(ctx context.Context, c *anywherev1.Cluster) error {
	other, err := cluster.Named(ctx, r.reader, c.Name)
	if err != nil {
		return err
	}
	if other != nil && other.Namespace != c.Namespace {
		return refusal("cluster name %s already exists, in namespace %s: choose another", c.Name, other.Namespace)
	}
	made := &clusterv1.Cluster{}
	err = r.live.Get(ctx, client.ObjectKey{Namespace: anywherev1.SystemNamespace, Name: c.Name}, made)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if made.Labels[anywherev1.ClusterNameLabel] != c.Name || made.Labels[anywherev1.ClusterNamespaceLabel] != c.Namespace {
		return refusal("cluster name %s already exists, in namespace %s: choose another", c.Name, anywherev1.SystemNamespace)
	}
	return nil
}

// notNewer says whether the management cluster is at least of the version of what it is to manage.
func (r *clusterRules) notNewer(ctx context.Context, c *anywherev1.Cluster) error {
	if c.IsSelfManaged() || c.Spec.EksaVersion == "" {
		return nil
	}
	manager, err := cluster.Named(ctx, r.reader, c.ManagedBy())
	if err != nil || manager == nil || manager.Spec.EksaVersion == "" {
		return err
	}
	mine, err := version.ParseSemantic(c.Spec.EksaVersion)
	if err != nil {
		return nil //nolint:nilerr // said before
	}
	theirs, err := version.ParseSemantic(manager.Spec.EksaVersion)
	if err == nil && theirs.LessThan(mine) {
		return refusal("cannot upgrade workload cluster to %s while management cluster is an older version: %s", c.Spec.EksaVersion, manager.Spec.EksaVersion)
	}
	return nil
}

// mostNames bounds a text, whatever the size of a fleet.
const mostNames = 5

func brief(names []string) string {
	if len(names) > mostNames {
		names = append(names[:mostNames:mostNames], "and others")
	}
	return strings.Join(names, ", ")
}
