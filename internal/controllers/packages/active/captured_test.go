package active

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/controllers/packages/mirror"
	"github.com/drover-dev/drover/internal/controllers/reconcile"
	"github.com/drover-dev/drover/internal/model/owner"
)

// oneSecret is an API server with one Secret and no namespace, which keeps what is created.
type oneSecret struct {
	client.Client

	secret  *corev1.Secret
	created client.Object
}

func (o *oneSecret) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	if o.secret == nil || key != client.ObjectKeyFromObject(o.secret) {
		return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
	}
	if full, ok := into.(*corev1.Secret); ok {
		o.secret.DeepCopyInto(full)
	}
	return nil
}

func (o *oneSecret) Create(_ context.Context, made client.Object, _ ...client.CreateOption) error {
	o.created = made
	return nil
}

// registries is a source without mirrors.
type registries struct{ Source }

func (registries) Host(registry string) (own, mirrored string) { return registry, "" }

func TestCapturedNamespaceGivesNoCredentials(t *testing.T) {
	const name = "billy"
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: packagesv1.NamespacePrefix + name, Name: mirror.Secret, UID: "a", ResourceVersion: "1"},
		Data:       bytesOf(map[string]string{"ENDPOINT": "mirror.test", "USERNAME": "drover", "PASSWORD": "canary"}),
	}
	api := &oneSecret{secret: secret}
	controller := &Controller{Client: api, Secrets: NewSecrets(api, api), Source: registries{}}
	for _, foreign := range []bool{false, true} {
		v := &visit{Controller: controller, Visit: &reconcile.Visit[*packagesv1.PackageBundleController]{Object: &packagesv1.PackageBundleController{}}}
		f := &facts{name: name, foreignNamespace: foreign}
		if err := v.observeMirror(t.Context(), f); err != nil {
			t.Fatal(err)
		}
		c := &f.credentials
		if got := c.sources[mirror.Credentials] != nil; got == foreign {
			t.Errorf("the namespace is foreign: %t, its credentials are copied: %t", foreign, got)
		}
		if action := c.local(); foreign && action != leave {
			t.Errorf("a foreign namespace is changed: %s", action)
		}
	}
}

func TestNamespaceIsCreatedForTheClusterOfTheController(t *testing.T) {
	api := &oneSecret{}
	object := &packagesv1.PackageBundleController{ObjectMeta: metav1.ObjectMeta{
		Name: "billy", Labels: owner.Labels(&metav1.ObjectMeta{Namespace: "team", Name: "billy"}), Annotations: map[string]string{anywherev1.ClusterUIDAnnotation: "one"},
	}}
	v := &visit{
		Controller: &Controller{Client: api, Secrets: NewSecrets(api, api)},
		Visit:      &reconcile.Visit[*packagesv1.PackageBundleController]{Object: object},
	}
	if err := v.createNamespace(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !owner.Shares(object, api.created) {
		t.Errorf("got namespace %+v, want one that shares the owner of the controller", api.created)
	}
}
