// Package scheme lists the kinds that a management plane stores, for every client of one. Start
// with New.
package scheme

import (
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	etcdbootstrapv1 "github.com/drover-dev/drover/api/bootstrap/v1beta1"
	droverv1 "github.com/drover-dev/drover/api/drover/v1alpha1"
	etcdv1 "github.com/drover-dev/drover/api/etcdcluster/v1beta1"
	infrav1 "github.com/drover-dev/drover/api/infrastructure/v1beta1"
	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
)

// New returns a scheme with the kinds of Kubernetes, Cluster API and Drover, and with those that
// more adds.
func New(more ...func(*runtime.Scheme) error) (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, add := range append([]func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme,
		clusterv1.AddToScheme, controlplanev1.AddToScheme, bootstrapv1.AddToScheme,
		anywherev1.AddToScheme, infrav1.AddToScheme, addonsv1.AddToScheme, packagesv1.AddToScheme, droverv1.AddToScheme,
		etcdbootstrapv1.AddToScheme, etcdv1.AddToScheme,
	}, more...) {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("registering API kinds: %w", err)
		}
	}
	return scheme, nil
}
