package desired

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
)

// SetDefaults sets the defaults of a HelmChartProxy, as the webhook does.
func SetDefaults(c *addonsv1.HelmChartProxy) {
	if c.Spec.ReleaseNamespace == "" {
		c.Spec.ReleaseNamespace = corev1.NamespaceDefault
	}
	if c.Spec.Options.Atomic {
		c.Spec.Options.Wait = true
	}
	if c.Spec.Options.Timeout == nil {
		c.Spec.Options.Timeout = &metav1.Duration{Duration: addonsv1.DefaultTimeout}
	}
}
