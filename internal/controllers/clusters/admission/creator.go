package admission

import (
	"context"
	"encoding/json"
	"fmt"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/controllers/clusters/cluster"
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
	}
	if name == "" {
		delete(is.Annotations, cluster.CreatedByAnnotation)
		return nil
	}
	metav1.SetMetaDataAnnotation(&is.ObjectMeta, cluster.CreatedByAnnotation, name)
	return nil
}

// moves reports whether a user may move a Cluster between management planes, which requires
// permission to impersonate its creator. A move is neither recorded as a creation nor as a
// deletion, and the records move too.
func (r *clusterRules) moves(ctx context.Context, c *anywherev1.Cluster, user authenticationv1.UserInfo) (bool, error) {
	may, err := r.mayImpersonate(ctx, user, c.Annotations[cluster.CreatedByAnnotation])
	if err != nil {
		return false, fmt.Errorf("checking whether %q may move clusters: %w", user.Username, err)
	}
	return may, nil
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
	may, err := r.mayImpersonate(ctx, user, claimed)
	if err != nil {
		return "", fmt.Errorf("checking whether %q may impersonate %q: %w", user.Username, claimed, err)
	}
	if may {
		return claimed, nil
	}
	return user.Username, nil
}

// review returns a function that checks whether a user may impersonate another.
func review(c client.Client) func(context.Context, authenticationv1.UserInfo, string) (bool, error) {
	return func(ctx context.Context, user authenticationv1.UserInfo, as string) (bool, error) {
		return allowed(ctx, c, user, authorizationv1.ResourceAttributes{Verb: "impersonate", Resource: "users", Name: as})
	}
}

// allowed asks the API server whether a user may do something.
func allowed(ctx context.Context, c client.Client, user authenticationv1.UserInfo, what authorizationv1.ResourceAttributes) (bool, error) {
	ask := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user.Username, UID: user.UID, Groups: user.Groups, Extra: extra(user), ResourceAttributes: &what,
	}}
	err := c.Create(ctx, ask)
	return ask.Status.Allowed, err
}

func extra(user authenticationv1.UserInfo) map[string]authorizationv1.ExtraValue {
	out := map[string]authorizationv1.ExtraValue{}
	for key, values := range user.Extra {
		out[key] = authorizationv1.ExtraValue(values)
	}
	return out
}
