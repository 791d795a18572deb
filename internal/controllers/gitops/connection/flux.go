package connection

import (
	"cmp"
	"fmt"
	"path"
	"slices"
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
		r.Path = cleanPath(r.Path)
	case p.ManagementCluster != "":
		r.Path = gitops.DefaultPath(p.ManagementCluster)
	default:
		return Connection{Repository: r, Denied: "spec.clusterConfigPath: set it, because the name of the management cluster is unknown"}
	}
	if secret == nil {
		return Connection{Repository: r, Denied: fmt.Sprintf("Secret %q not found; ask an administrator to connect the repository with drover gitops enable", Key(c))}
	}
	return Connection{Repository: r, Denied: p.Deny(r, secret, c.Namespace)}
}

// Deny returns why a namespace may not use credentials for a repository and its directory, or "" if
// it may.
func (p Plane) Deny(r Repository, secret metav1.Object, namespace string) string {
	if denied := r.deny(secret, namespace); denied != "" {
		return denied
	}
	if r.Path == "" {
		return ""
	}
	return p.DenyPath(r.Path, secret)
}

// DenyPath returns why nobody may use credentials for a directory, or "" if it is open.
func (p Plane) DenyPath(dir string, secret metav1.Object) string {
	if slices.Contains(p.paths(secret), cleanPath(dir)) {
		return ""
	}
	return fmt.Sprintf("spec.clusterConfigPath: directory %q is not open to FluxConfigs; ask an administrator to open it with drover gitops enable", dir)
}

// paths returns the directories that an administrator has opened. Users choose the FluxConfig, but
// not whose specs they may change: by default, there is one directory for all of them, in which
// each cluster belongs to its namespace.
func (p Plane) paths(secret metav1.Object) []string {
	if listed, ok := secret.GetAnnotations()[anywherev1.GitPathsAnnotation]; ok {
		var all []string
		for one := range strings.SplitSeq(listed, ",") {
			all = append(all, cleanPath(strings.TrimSpace(one)))
		}
		return all
	}
	if p.ManagementCluster == "" {
		return nil
	}
	return []string{gitops.DefaultPath(p.ManagementCluster)}
}

// cleanPath returns a directory relative to the root of a repository.
func cleanPath(dir string) string { return cmp.Or(strings.TrimPrefix(path.Clean("/"+dir), "/"), ".") }

// IsSource reports whether a GitRepository fetches the repository, from any branch.
func (r Repository) IsSource(of *sourcev1.GitRepository) bool {
	source := Repository{URL: of.Spec.URL}.Canonical()
	return source != "" && source == r.Canonical()
}

// IsFollowed reports whether a GitRepository fetches the repository and its branch.
func (r Repository) IsFollowed(by *sourcev1.GitRepository) bool {
	return r.IsSource(by) && by.Spec.Reference != nil && by.Spec.Reference.Branch == r.Branch
}
