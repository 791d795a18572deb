package admission

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	droverv1 "github.com/drover-dev/drover/api/drover/v1alpha1"
	"github.com/drover-dev/drover/internal/controllers/clusters/records"
	"github.com/drover-dev/drover/internal/model/audit"
	"github.com/drover-dev/drover/internal/model/spec"
)

// retryAfter is when to retry a change that has to wait for earlier ones to be recorded.
const retryAfter = 2 * time.Second

// stamp adds a change of a Cluster to those that are recorded later. It rejects the change while
// too many others wait, because they are the only trace of who made them.
func (r *clusterRules) stamp(was, is *anywherev1.Cluster, user authenticationv1.UserInfo) error {
	err := audit.Stamp(was, is, user, r.now())
	if errors.Is(err, audit.ErrBacklog) {
		return apierrors.NewTooManyRequests(fmt.Sprintf("changing cluster %q: %v; retry in a few seconds", is.Name, err), int(retryAfter.Seconds()))
	}
	return err
}

// configChanges records changes of configs, for each Cluster that references one.
type configChanges struct {
	reader  client.Reader
	moves   func(ctx context.Context, c *anywherev1.Cluster, user authenticationv1.UserInfo) (bool, error)
	records *records.Recorder
	now     func() time.Time
}

// record records the change of a config.
func (r *configChanges) record(ctx context.Context, o client.Object, changes []droverv1.AuditedChange) error {
	return r.each(ctx, o, changes, func(context.Context, *anywherev1.Cluster, authenticationv1.UserInfo) (bool, error) { return false, nil })
}

// recordReplaced records that a config was created or deleted, which changes a Cluster that
// references it. A move, which does both, is not recorded.
func (r *configChanges) recordReplaced(ctx context.Context, o client.Object, changes []droverv1.AuditedChange) error {
	return r.each(ctx, o, changes, func(ctx context.Context, c *anywherev1.Cluster, user authenticationv1.UserInfo) (bool, error) {
		if !c.IsPaused() {
			return false, nil
		}
		return r.moves(ctx, c, user)
	})
}

// each writes a record for each Cluster that references a config, unless skip says otherwise.
func (r *configChanges) each(
	ctx context.Context, o client.Object, changes []droverv1.AuditedChange,
	skip func(context.Context, *anywherev1.Cluster, authenticationv1.UserInfo) (bool, error),
) error {
	if r == nil || len(changes) == 0 {
		return nil
	}
	request, err := admission.RequestFromContext(ctx)
	if err != nil || ptr.Deref(request.DryRun, false) {
		return err
	}
	config := droverv1.AuditedObject{Kind: request.Kind.Kind, Name: o.GetName()}
	clusters := &anywherev1.ClusterList{}
	if err := r.reader.List(ctx, clusters, client.InNamespace(o.GetNamespace())); err != nil {
		return fmt.Errorf("listing clusters that reference %s %q: %w", config.Kind, config.Name, err)
	}
	for i := range clusters.Items {
		c := &clusters.Items[i]
		if !c.DeletionTimestamp.IsZero() || !slices.Contains(spec.References(c), anywherev1.Ref(config)) {
			continue
		}
		skipped, err := skip(ctx, c, request.UserInfo)
		if err == nil && !skipped {
			err = r.records.RecordObject(ctx, audit.ObjectChange(c, config, changes, request.AdmissionRequest, r.now()))
		}
		if err != nil {
			return err
		}
	}
	return nil
}
