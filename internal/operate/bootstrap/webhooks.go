package bootstrap

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/config"
)

// serversIdentifyThemselves reports whether all API servers of a cluster present a certificate to
// Drover's webhooks. Those of clusters that Drover created do; the spec of a cluster may replace
// the file that says so, and clusters of an earlier Drover lack it until they are upgraded.
func serversIdentifyThemselves(ctx context.Context, c client.Reader) (bool, error) {
	servers := &corev1.PodList{}
	if err := c.List(ctx, servers, client.InNamespace(metav1.NamespaceSystem), client.MatchingLabels{"component": "kube-apiserver"}); err != nil {
		return false, fmt.Errorf("listing API servers: %w", err)
	}
	return identifyThemselves(servers.Items), nil
}

func identifyThemselves(servers []corev1.Pod) bool {
	for i := range servers {
		if !slices.ContainsFunc(servers[i].Spec.Containers, func(c corev1.Container) bool {
			return slices.Contains(slices.Concat(c.Command, c.Args), "--"+config.AdmissionFlag+"="+config.AdmissionFile)
		}) {
			return false
		}
	}
	return len(servers) > 0
}
