package encryption

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
)

// reader returns one Secret and nothing else.
type reader struct {
	client.Client

	secret *corev1.Secret
}

func (r reader) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	switch into := into.(type) {
	case *corev1.Secret:
		r.secret.DeepCopyInto(into)
	case *metav1.PartialObjectMetadata:
		into.ObjectMeta = r.secret.ObjectMeta
	default:
		return apierrors.NewNotFound(corev1.Resource("any"), key.Name)
	}
	return nil
}

// A Secret whose Cluster doesn't exist may stay forever, so that nothing asks for it again and
// again.
func TestRewritingWaitsForEventsOfTheCluster(t *testing.T) {
	cluster := management()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: anywherev1.SystemNamespace, Name: "mgmt-encryption", Labels: map[string]string{anywherev1.ClusterNameLabel: "mgmt"}}}
	state := &State{Stage: Rewriting, Revision: 3, Old: []apiserverv1.ProviderConfiguration{identity()}, New: &apiserverv1.ProviderConfiguration{KMS: kmsForSecrets(vault("vault").KMS)}}
	if err := state.Encode(secret, cluster, ""); err != nil {
		t.Fatal(err)
	}
	c := &Controller{Client: reader{secret: secret}, Live: reader{secret: secret}, Metadata: reader{secret: secret}}
	request := ctrl.Request{NamespacedName: client.ObjectKeyFromObject(secret)}
	if got, err := c.Reconcile(t.Context(), request); err != nil || !got.IsZero() {
		t.Errorf("result %v, error %v without a Cluster", got, err)
	}
	if diff := cmp.Diff([]ctrl.Request{request}, c.ofCluster(t.Context(), cluster)); diff != "" {
		t.Errorf("requests for a Cluster that appears (-want +got):\n%s", diff)
	}
	secret.Annotations[anywherev1.EncryptionStageAnnotation] = string(Settled)
	if got := c.ofCluster(t.Context(), cluster); got != nil {
		t.Errorf("got requests %v, want none: nothing must be rewritten", got)
	}
}
