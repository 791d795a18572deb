package kubetest_test

import (
	"os"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drover-dev/drover/internal/install"
	"github.com/drover-dev/drover/internal/test/kubetest"
)

func TestMain(m *testing.M) { os.Exit(kubetest.Main(m)) }

func TestSharedServerServesClusterAPI(t *testing.T) {
	s := kubetest.Shared(t, install.Options{})
	groups, err := s.Clientset(t).Discovery().ServerResourcesForGroupVersion("cluster.x-k8s.io/v1beta2")
	if err != nil || len(groups.APIResources) == 0 {
		t.Fatalf("cluster.x-k8s.io/v1beta2 is not served: %v", err)
	}
	if again := kubetest.Shared(t, install.Options{}); again != s {
		t.Error("a second call started a second server")
	}
}

func TestNamespacesAreUnique(t *testing.T) {
	s := kubetest.Shared(t, install.Options{})
	a, b := s.Namespace(t), s.Namespace(t)
	if a == b {
		t.Errorf("got namespace %q twice", a)
	}
	if _, err := s.Clientset(t).CoreV1().Namespaces().Get(t.Context(), b, metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
}
