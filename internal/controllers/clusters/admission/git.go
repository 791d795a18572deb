package admission

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	droverv1 "github.com/drover-dev/drover/api/drover/v1alpha1"
	"github.com/drover-dev/drover/config"
	"github.com/drover-dev/drover/internal/model/removal"
	"github.com/drover-dev/drover/internal/model/spec"
)

// confirmedRemoval keeps Flux from deleting a Cluster that is in use before somebody confirms that.
// Flux prunes as soon as it sees a commit, so only admission comes before it. Flux tries again what
// was rejected.
func confirmedRemoval(ctx context.Context, c *anywherev1.Cluster) error {
	request, err := admission.RequestFromContext(ctx)
	if err != nil {
		return err
	}
	if !removal.IsFlux(request.UserInfo.Username) || !removal.Waits(c) {
		return nil
	}
	return rejection("%s", removal.Message(c))
}

// confirmedRemovalOf does the same for a config that such a Cluster references.
func confirmedRemovalOf(ctx context.Context, reader client.Reader, referenced client.Object) error {
	request, err := admission.RequestFromContext(ctx)
	if err != nil || !removal.IsFlux(request.UserInfo.Username) {
		return err
	}
	clusters := &anywherev1.ClusterList{}
	if err := reader.List(ctx, clusters, client.InNamespace(referenced.GetNamespace())); err != nil {
		return fmt.Errorf("listing clusters that reference %s %q: %w", request.Kind.Kind, referenced.GetName(), err)
	}
	for i := range clusters.Items {
		c := &clusters.Items[i]
		if removal.Waits(c) && slices.Contains(spec.References(c), anywherev1.Ref{Kind: request.Kind.Kind, Name: referenced.GetName()}) {
			return rejection("%s %q is referenced. %s", request.Kind.Kind, referenced.GetName(), removal.Message(c))
		}
	}
	return nil
}

// isManagementInGit reports whether Flux applies the files of an existing management cluster. It
// keeps its machines, also local ones, although the account may not read their credentials: an
// administrator has connected the repository, and only administrators can use the account.
func isManagementInGit(ctx context.Context, was *anywherev1.Cluster) (bool, error) {
	if !was.IsSelfManaged() {
		return false, nil
	}
	request, err := admission.RequestFromContext(ctx)
	return err == nil && request.UserInfo.Username == "system:serviceaccount:"+config.FluxNamespace+":"+anywherev1.GitAccount, err
}

// requestedBy returns the user whose GitChange committed the spec of a Cluster that Flux creates,
// so that this user may read its kubeconfig. A spec that was committed by hand belongs to the
// account of Flux. Only the manager writes the condition of a GitChange.
func (r *clusterRules) requestedBy(ctx context.Context, c *anywherev1.Cluster, user string) (string, error) {
	if user != "system:serviceaccount:"+c.Namespace+":"+anywherev1.GitAccount {
		return user, nil
	}
	changes := &droverv1.GitChangeList{}
	if err := r.live.List(ctx, changes, client.InNamespace(c.Namespace)); err != nil {
		return "", fmt.Errorf("listing the GitChanges of cluster %q: %w", c.Name, err)
	}
	newest := &droverv1.GitChange{}
	for i := range changes.Items {
		change := &changes.Items[i]
		if change.Spec.Cluster == c.Name && change.Spec.Action == droverv1.GitWrite && change.Spec.RequestedBy != "" &&
			meta.IsStatusConditionTrue(change.Status.Conditions, droverv1.GitCommitted) && newest.CreationTimestamp.Before(&change.CreationTimestamp) {
			newest = change
		}
	}
	if newest.Spec.RequestedBy == "" {
		return user, nil
	}
	return newest.Spec.RequestedBy, nil
}
