package admission

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/controllers/clusters/cluster"
	"github.com/drover-dev/drover/internal/controllers/clusters/records"
	"github.com/drover-dev/drover/internal/controllers/requester"
	"github.com/drover-dev/drover/internal/model/audit"
	"github.com/drover-dev/drover/internal/model/spec"
)

// clusterRules are the webhooks of Clusters.
type clusterRules struct {
	Options

	// reader reads from the cache of the manager, live from the API server.
	reader, live client.Reader
	users        *requester.Reviewer
	credentials  *credentialRules
	records      *records.Recorder
	now          func() time.Time
}

// Default sets defaults, the creator of a new Cluster, and the pending audit records.
func (r *clusterRules) Default(ctx context.Context, c *anywherev1.Cluster) error {
	if c.DeletionTimestamp.IsZero() {
		spec.DefaultCluster(c)
	}
	request, err := admission.RequestFromContext(ctx)
	if err != nil {
		return err
	}
	if !ptr.Deref(request.DryRun, false) {
		delete(c.Annotations, anywherev1.CapacityCheckAnnotation)
	}
	was, err := former(request)
	if err != nil {
		return err
	}
	moved := false
	if isMovedHere(was, c) {
		if moved, err = r.moves(ctx, c, request.UserInfo); err != nil {
			return err
		}
	}
	if was != nil {
		spec.KeepOrder(was, c)
	}
	if err := r.identify(ctx, was, c, request.UserInfo); err != nil {
		return err
	}
	if err := r.sign(ctx, was, c, request.UserInfo); err != nil {
		return err
	}
	if err := r.entitle(ctx, was, c, request.UserInfo); err != nil {
		return err
	}
	if moved {
		delete(c.Annotations, audit.Annotation)
		return nil
	}
	return r.stamp(was, c, request.UserInfo)
}

// ValidateCreate checks a new object. A paused one is being moved from another management plane,
// which has validated it.
func (r *clusterRules) ValidateCreate(ctx context.Context, c *anywherev1.Cluster) (admission.Warnings, error) {
	if err := Reserved(ctx, r.users, c); err != nil {
		return nil, err
	}
	if err := r.renewable(nil, c); err != nil {
		return nil, err
	}
	if !c.IsPaused() && c.IsSelfManaged() && !c.IsManagedByCLI() {
		return nil, rejection("creating new cluster on existing cluster is not supported for self managed clusters")
	}
	if !c.IsPaused() && c.UsesEncryptionPlugin() {
		return nil, invalid("spec.etcdEncryption: etcdEncryption is not supported during cluster creation")
	}
	if wrong := spec.ValidateNew(c); !c.IsPaused() && len(wrong) > 0 {
		return nil, invalid(wrong.Error())
	}
	warnings, err := r.checkName(ctx, c)
	if err != nil {
		return nil, err
	}
	if err := r.content(ctx, c); err != nil {
		return nil, err
	}
	if err := r.managedHere(ctx, c); err != nil {
		return nil, err
	}
	if err := r.credentials.ofCluster(ctx, c); err != nil {
		return warnings, err
	}
	if err := r.withinQuota(ctx, nil, c); err != nil {
		return warnings, err
	}
	return append(warnings, r.capacityWarnings(ctx, nil, c)...), nil
}

// ValidateUpdate checks an updated object.
func (r *clusterRules) ValidateUpdate(ctx context.Context, was, is *anywherev1.Cluster) (admission.Warnings, error) {
	if err := r.keepsFinalizer(ctx, was, is); err != nil {
		return nil, err
	}
	if err := r.renewable(was, is); err != nil {
		return nil, err
	}
	if !is.DeletionTimestamp.IsZero() || equality.Semantic.DeepEqual(was.Spec, is.Spec) {
		return nil, nil
	}
	if wrong := spec.ValidateUpdate(was, is); len(wrong) > 0 {
		return nil, invalid(wrong.Error())
	}
	if err := r.promoted(ctx, was, is); err != nil {
		return nil, err
	}
	if err := r.content(ctx, is); err != nil {
		return nil, err
	}
	if fromGit, err := isManagementInGit(ctx, was); err != nil || fromGit {
		return nil, err
	}
	if err := r.credentials.ofCluster(ctx, is); err != nil {
		return nil, err
	}
	if err := r.withinQuota(ctx, was, is); err != nil {
		return nil, err
	}
	return r.capacityWarnings(ctx, was, is), nil
}

// promoted rejects a workload cluster that becomes a management cluster, which belongs to
// administrators. Nothing else does while it is paused.
func (r *clusterRules) promoted(ctx context.Context, was, is *anywherev1.Cluster) error {
	if was.IsSelfManaged() || !is.IsSelfManaged() {
		return nil
	}
	if administrator, err := r.users.IsAdministrator(ctx, clusterResource()); err != nil || administrator {
		return err
	}
	return rejection("spec.management: only administrators may make cluster %s a management cluster", is.Name)
}

// ValidateDelete checks whether a Cluster may be deleted, and records the deletion.
func (r *clusterRules) ValidateDelete(ctx context.Context, c *anywherev1.Cluster) (admission.Warnings, error) {
	if err := r.deletable(ctx, c); err != nil {
		return nil, err
	}
	if err := confirmedRemoval(ctx, c); err != nil {
		return nil, err
	}
	request, err := admission.RequestFromContext(ctx)
	if err != nil || ptr.Deref(request.DryRun, false) || !c.DeletionTimestamp.IsZero() {
		return nil, err
	}
	if isMovedAway(c) {
		if moved, err := r.moves(ctx, c, request.UserInfo); err != nil || moved {
			return nil, err
		}
	}
	return nil, r.records.RecordDeletion(ctx, c, request.UserInfo, r.now())
}

// deletable protects management clusters, which only a command may delete.
func (r *clusterRules) deletable(ctx context.Context, c *anywherev1.Cluster) error {
	if c.IsManaged() || c.IsPaused() {
		return nil
	}
	workloads, err := cluster.FindWorkloads(ctx, r.reader, c)
	switch {
	case err != nil:
		return err
	case !workloads.None():
		return rejection("deleting management cluster %s while workload clusters are managed by it is not supported; delete %s first", c.Name, workloads)
	case !c.IsManagedByCLI():
		return rejection("deleting self-managed clusters is not supported")
	}
	return nil
}

// content validates a spec for this management plane.
func (r *clusterRules) content(ctx context.Context, c *anywherev1.Cluster) error {
	wrong := spec.ValidateCluster(c)
	wrong = append(wrong, r.shipped(c)...)
	if len(wrong) > 0 {
		return invalid(wrong.Error())
	}
	if err := r.credentials.ofMirror(ctx, c); err != nil {
		return err
	}
	return r.notNewer(ctx, c)
}

// shipped rejects unsupported Kubernetes versions.
func (r *clusterRules) shipped(c *anywherev1.Cluster) spec.Violations {
	var wrong spec.Violations
	check := func(path, minor string) {
		if minor == "" {
			return
		}
		if _, err := r.Version(minor); err != nil {
			wrong = append(wrong, spec.Violation{Path: "Cluster/" + c.Name + ": " + path, Problem: err.Error(), Remedy: "use a supported version"})
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

// managedHere rejects a new Cluster that names a management cluster of another management plane,
// because the name can't be changed afterwards. A paused Cluster is being moved, and may arrive
// first.
func (r *clusterRules) managedHere(ctx context.Context, c *anywherev1.Cluster) error {
	if c.IsPaused() {
		return nil
	}
	found, err := cluster.IsManagedHere(ctx, r.live, c, r.ManagementCluster)
	if err != nil || found {
		return err
	}
	wrong := spec.Violation{
		Path: "spec.managementCluster.name", Problem: fmt.Sprintf("%q is not a management cluster of this management plane", c.ManagedBy()),
		Remedy: "use the kubeconfig of that cluster, or set management: false instead of the name",
	}
	return invalid(spec.Violations{wrong}.Error())
}

// notNewer rejects a workload cluster that is newer than its management cluster.
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
		return nil //nolint:nilerr // package spec reports it
	}
	theirs, err := version.ParseSemantic(manager.Spec.EksaVersion)
	if err == nil && theirs.LessThan(mine) {
		return rejection("cannot upgrade workload cluster to %s while management cluster is an older version: %s", c.Spec.EksaVersion, manager.Spec.EksaVersion)
	}
	return nil
}
