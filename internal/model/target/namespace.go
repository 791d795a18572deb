package target

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
)

// Namespace returns the namespace of the packages of a cluster. No Pods run in it, and those that
// an administrator might run get no privileges.
func Namespace(cluster string) *corev1.Namespace {
	labels := map[string]string{}
	for _, mode := range []string{"enforce", "audit", "warn"} {
		labels["pod-security.kubernetes.io/"+mode] = "restricted"
	}
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: packagesv1.NamespacePrefix + cluster, Labels: labels}}
}
