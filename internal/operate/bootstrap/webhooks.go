package bootstrap

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/config"
)

// webhookFlag is the argument of the manager after which the one for clients is inserted.
const webhookFlag = "        - --webhook-addr=:9443\n"

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

// requireCertificates makes the manager reject clients of webhooks other than the API server.
func requireCertificates(manifests []config.Manifest) []config.Manifest {
	for i, m := range manifests {
		if m.Name == deployment {
			manifests[i].Data = bytes.Replace(m.Data, []byte(webhookFlag), []byte(webhookFlag+"        - --webhook-client-ca=cluster\n"), 1)
		}
	}
	return manifests
}
