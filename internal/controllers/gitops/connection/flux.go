package connection

import (
	"cmp"
	"fmt"
	"path"
	"strings"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/model/gitops"
	"github.com/drover-dev/drover/internal/model/spec"
)

// Connection is a FluxConfig and what Flux needs to know about it.
type Connection struct {
	Repository

	// Denied is why the FluxConfig isn't connected, or "".
	Denied string
}

// Key returns the key of the Secret with the credentials of a FluxConfig, which is also that of the
// GitRepository of Flux.
func Key(c *anywherev1.FluxConfig) client.ObjectKey {
	return client.ObjectKey{Namespace: cmp.Or(c.Spec.SystemNamespace, spec.DefaultFluxSystem), Name: anywherev1.GitCredentials}
}

// Plane is the management plane that FluxConfigs are connected with.
type Plane struct {
	// FluxNamespace is the only namespace of Flux; any if it is empty.
	FluxNamespace string
	// ManagementCluster determines the path of FluxConfigs that have none.
	ManagementCluster string
}

// Connect returns the connection of a FluxConfig. The Secret is nil if it doesn't exist.
func (p Plane) Connect(c *anywherev1.FluxConfig, secret metav1.Object) Connection {
	r, err := Of(c.Spec)
	switch {
	case err != nil:
		return Connection{Repository: r, Denied: err.Error()}
	case p.FluxNamespace != "" && r.Namespace != p.FluxNamespace:
		return Connection{Repository: r, Denied: fmt.Sprintf("spec.systemNamespace: use %q, the namespace of Flux", p.FluxNamespace)}
	case r.Path != "":
		r.Path = cmp.Or(strings.TrimPrefix(path.Clean("/"+r.Path), "/"), ".")
	case p.ManagementCluster != "":
		r.Path = gitops.DefaultPath(p.ManagementCluster)
	default:
		return Connection{Repository: r, Denied: "spec.clusterConfigPath: set it, because the name of the management cluster is unknown"}
	}
	if secret == nil {
		return Connection{Repository: r, Denied: fmt.Sprintf("Secret %q not found; ask an administrator to connect the repository with drover gitops enable", Key(c))}
	}
	return Connection{Repository: r, Denied: r.Deny(secret, c.Namespace)}
}

// IsSource reports whether a GitRepository fetches the repository, from any branch.
func (r Repository) IsSource(of *sourcev1.GitRepository) bool {
	source := Repository{URL: of.Spec.URL}.Canonical()
	return source != "" && source == r.Canonical()
}

// IsFollowed reports whether a GitRepository fetches the repository and its branch.
func (r Repository) IsFollowed(by *sourcev1.GitRepository) bool {
	return r.IsSource(by) && by.Spec.Reference != nil && by.Spec.Reference.Branch == r.Branch
}
