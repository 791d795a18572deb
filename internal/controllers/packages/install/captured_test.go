package install

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/controllers/packages/mirror"
	"github.com/drover-dev/drover/internal/model/addons/sources"
)

// login is an API server that has only the credentials of the mirror in the namespace of a cluster.
type login struct{ client.Reader }

func (login) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	if key != (client.ObjectKey{Namespace: packagesv1.NamespacePrefix + "billy", Name: mirror.Credentials}) {
		return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
	}
	if secret, ok := into.(*corev1.Secret); ok {
		secret.Data = map[string][]byte{mirror.EndpointKey: []byte("mirror.example.com"), addonsv1.DefaultCredentialsKey: []byte("canary")}
	}
	return nil
}

func TestCredentialsOfACapturedNamespaceAreNotUsed(t *testing.T) {
	c := &Controller{Values: sources.New(login{}, login{}), Places: places{}}
	for _, foreign := range []bool{false, true} {
		p := at("mirror.example.com", "mirrored")
		s := &scope{facts: facts{
			controller: &packagesv1.PackageBundleController{}, target: &packagesv1.PackageTarget{Cluster: "billy"}, foreignNamespace: foreign,
		}}
		s.found.Package = &p
		wanted := &addonsv1.HelmReleaseProxySpec{}
		if err := c.access(t.Context(), s, wanted); err != nil {
			t.Fatal(err)
		}
		if used := wanted.Credentials != nil; used == foreign {
			t.Errorf("the namespace is foreign: %t, its credentials are used: %t", foreign, used)
		}
	}
}
