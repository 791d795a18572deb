package scheme

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	droverv1 "github.com/drover-dev/drover/api/drover/v1alpha1"
	infrav1 "github.com/drover-dev/drover/api/infrastructure/v1beta1"
	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
)

func TestNewKnowsTheKindsOfAManagementPlane(t *testing.T) {
	scheme, err := New()
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range []runtime.Object{
		&corev1.Secret{}, &apiextensionsv1.CustomResourceDefinition{}, &clusterv1.Machine{}, &controlplanev1.KubeadmControlPlane{},
		&bootstrapv1.KubeadmConfig{}, &anywherev1.Cluster{}, &infrav1.PacketMachine{}, &addonsv1.HelmChartProxy{}, &packagesv1.Package{},
		&droverv1.AuditRecord{},
	} {
		if _, _, err := scheme.ObjectKinds(object); err != nil {
			t.Errorf("%T: %v", object, err)
		}
	}
}

func TestNewReportsRegistrationErrors(t *testing.T) {
	broken := errors.New("broken")
	if _, err := New(func(*runtime.Scheme) error { return broken }); !errors.Is(err, broken) {
		t.Errorf("error %v, want %v", err, broken)
	}
}
