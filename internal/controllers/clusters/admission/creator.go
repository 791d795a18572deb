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

// former is what a Cluster was before the request; nil if it is new.
func former(request admission.Request) (*anywherev1.Cluster, error) {
	if request.Operation != admissionv1.Update {
		return nil, nil
	}
	was := &anywherev1.Cluster{}
	if err := json.Unmarshal(request.OldObject.Raw, was); err != nil {
		return nil, fmt.Errorf("reading what Cluster %q was: %w", request.Name, err)
	}
	return was, nil
}

// sign notes who made a Cluster. Nobody else's name can be put there, and the name stays, because it decides who is given the kubeconfig. Who
// may act as somebody else may also sign for them, as those must who move Clusters to another management plane.
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

// moves says that somebody moves a Cluster from or to another management plane. They neither make nor delete it, and its history goes along.
// It counts only from those who may act as who made it: nobody else gets past being recorded.
func (r *clusterRules) moves(ctx context.Context, c *anywherev1.Cluster, user authenticationv1.UserInfo) (bool, error) {
	may, err := r.mayImpersonate(ctx, user, c.Annotations[cluster.CreatedByAnnotation])
	if err != nil {
		return false, fmt.Errorf("asking whether %q may move clusters: %w", user.Username, err)
	}
	return may, nil
}

// arrives says that a new Cluster comes from another management plane: it is paused, and somebody has made it before.
func arrives(was, is *anywherev1.Cluster) bool {
	return was == nil && is.IsPaused() && is.Annotations[cluster.CreatedByAnnotation] != ""
}

// leaves says that a Cluster is deleted because it is on another management plane by now.
func leaves(c *anywherev1.Cluster) bool {
	_, moved := c.Annotations[clusterctlv1.DeleteForMoveAnnotation]
	return moved
}

// creator is who is given the kubeconfig of a new Cluster.
func (r *clusterRules) creator(ctx context.Context, claimed string, user authenticationv1.UserInfo) (string, error) {
	if claimed == "" || claimed == user.Username {
		return user.Username, nil
	}
	may, err := r.mayImpersonate(ctx, user, claimed)
	if err != nil {
		return "", fmt.Errorf("asking whether %q may act as somebody else: %w", user.Username, err)
	}
	if may {
		return claimed, nil
	}
	return user.Username, nil
}

// review asks the API server whether a user may act as another.
func review(c client.Client) func(context.Context, authenticationv1.UserInfo, string) (bool, error) {
	return func(ctx context.Context, user authenticationv1.UserInfo, as string) (bool, error) {
		ask := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: user.Username, UID: user.UID, Groups: user.Groups, Extra: extra(user),
			ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "impersonate", Resource: "users", Name: as},
		}}
		err := c.Create(ctx, ask)
		return ask.Status.Allowed, err
	}
}

func extra(user authenticationv1.UserInfo) map[string]authorizationv1.ExtraValue {
	out := map[string]authorizationv1.ExtraValue{}
	for key, values := range user.Extra {
		out[key] = authorizationv1.ExtraValue(values)
	}
	return out
}
