package web

import (
	"context"
	"fmt"
	"net/http"

	"sigs.k8s.io/cluster-api/util/secret"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
)

// noKubeconfig is why a user can't download a kubeconfig.
const noKubeconfig = "You may not read the kubeconfig of this cluster. It is in a Secret that its creator and administrators can read: " +
	"ask one of them, or ask an administrator to let you read it."

// kubeconfigAction asks the plane whether the user may read the Secret, where inspect looks for it.
func (v *View) kubeconfigAction(ctx context.Context, t target) Action {
	name := secret.Name(t.key.Name, secret.Kubeconfig)
	namespaces := []string{t.key.Namespace}
	if t.described != nil && t.key.Namespace != anywherev1.SystemNamespace {
		namespaces = append(namespaces, anywherev1.SystemNamespace)
	}
	for _, namespace := range namespaces {
		if v.may(ctx, "get", "", "secrets", Key{Namespace: namespace, Name: name}) {
			return Action{Name: actKubeconfig}
		}
	}
	return Action{Name: actKubeconfig, Unusable: noKubeconfig}
}

// getKubeconfig sends the kubeconfig of a cluster, if the plane lets the user read it.
func (v *View) getKubeconfig(w http.ResponseWriter, r *http.Request) {
	key := keyOf(r)
	source, err := v.plane.KubeconfigSource(r.Context(), key.Namespace, key.Name)
	if err != nil {
		report(w, err)
		return
	}
	data, err := source.Read(r.Context())
	if err != nil {
		report(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/yaml")
	w.Header().Set("Content-Disposition", fmt.Sprintf("attachment; filename=%q", key.Name+".kubeconfig"))
	_, _ = w.Write(data) // the browser may be gone
}
