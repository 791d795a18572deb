package admission

import (
	"context"
	"encoding/json"
	"fmt"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/controllers/clusters/cluster"
	"github.com/drover-dev/drover/internal/model/owner"
)

// former returns the Cluster before the request, or nil if it is new.
func former(request admission.Request) (*anywherev1.Cluster, error) {
	if request.Operation != admissionv1.Update {
		return nil, nil
	}
	was := &anywherev1.Cluster{}
	if err := json.Unmarshal(request.OldObject.Raw, was); err != nil {
		return nil, fmt.Errorf("decoding the old Cluster %q: %w", request.Name, err)
	}
	return was, nil
}

// sign sets the creator of a Cluster, which is immutable because it determines who may read the
// kubeconfig. Only users who may impersonate the creator can set another name, which moving a
// Cluster to another management plane requires.
func (r *clusterRules) sign(ctx context.Context, was, is *anywherev1.Cluster, user authenticationv1.UserInfo) error {
	var name string
	if was != nil {
		name = was.Annotations[cluster.CreatedByAnnotation]
	} else {
		var err error
		if name, err = r.creator(ctx, is.Annotations[cluster.CreatedByAnnotation], user); err != nil {
			return err
		}
		if name, err = r.requestedBy(ctx, is, name); err != nil {
			return err
		}
	}
	annotate(is, cluster.CreatedByAnnotation, name)
	return nil
}

// identify sets the UID that the objects of a Cluster carry. Users can't change it, because it
// determines which machines and which kubeconfig belong to the Cluster. Only users who may move a
// Cluster bring it along.
func (r *clusterRules) identify(ctx context.Context, was, is *anywherev1.Cluster, user authenticationv1.UserInfo) error {
	if was != nil {
		annotate(is, anywherev1.ClusterUIDAnnotation, owner.UID(was))
		return nil
	}
	if is.Annotations[anywherev1.ClusterUIDAnnotation] == "" {
		return nil
	}
	may, err := r.moves(ctx, is, user)
	if err != nil || may {
		return err
	}
	delete(is.Annotations, anywherev1.ClusterUIDAnnotation)
	return nil
}

// entitle marks a Cluster that an administrator creates for themselves: it may use objects that
// were prepared for it. Creating one for somebody else, as a move does, keeps the mark as it is.
func (r *clusterRules) entitle(ctx context.Context, was, is *anywherev1.Cluster, user authenticationv1.UserInfo) error {
	if was != nil {
		annotate(is, anywherev1.AdministeredAnnotation, was.Annotations[anywherev1.AdministeredAnnotation])
		return nil
	}
	administrator, err := r.users.IsAdministrator(ctx, clusterResource())
	switch {
	case err != nil:
		return err
	case !administrator:
		annotate(is, anywherev1.AdministeredAnnotation, "")
	case is.Annotations[cluster.CreatedByAnnotation] == user.Username: // signed before
		annotate(is, anywherev1.AdministeredAnnotation, "true")
	}
	return nil
}

// annotate sets an annotation, or removes it if the value is empty.
func annotate(c *anywherev1.Cluster, key, value string) {
	if value == "" {
		delete(c.Annotations, key)
		return
	}
	metav1.SetMetaDataAnnotation(&c.ObjectMeta, key, value)
}

// moves reports whether a user may move a Cluster between management planes: administrators may who
// have permission to impersonate its creator. A move is neither recorded as a creation nor as a
// deletion, and the records move too.
func (r *clusterRules) moves(ctx context.Context, c *anywherev1.Cluster, user authenticationv1.UserInfo) (bool, error) {
	may, err := r.users.MayImpersonate(ctx, user, c.Annotations[cluster.CreatedByAnnotation])
	if err != nil {
		return false, fmt.Errorf("checking whether %q may move clusters: %w", user.Username, err)
	}
	if !may {
		return false, nil
	}
	return r.users.IsAdministrator(ctx, clusterResource())
}

// isMovedHere reports whether a new Cluster is moved from another management plane: it is paused
// and has a creator.
func isMovedHere(was, is *anywherev1.Cluster) bool {
	return was == nil && is.IsPaused() && is.Annotations[cluster.CreatedByAnnotation] != ""
}

// isMovedAway reports whether a Cluster is deleted because it was moved to another management
// plane.
func isMovedAway(c *anywherev1.Cluster) bool {
	_, moved := c.Annotations[clusterctlv1.DeleteForMoveAnnotation]
	return moved
}

// creator returns the creator of a new Cluster.
func (r *clusterRules) creator(ctx context.Context, claimed string, user authenticationv1.UserInfo) (string, error) {
	if claimed == "" || claimed == user.Username {
		return user.Username, nil
	}
	may, err := r.users.MayImpersonate(ctx, user, claimed)
	if err != nil {
		return "", fmt.Errorf("checking whether %q may impersonate %q: %w", user.Username, claimed, err)
	}
	if may {
		return claimed, nil
	}
	return user.Username, nil
}
