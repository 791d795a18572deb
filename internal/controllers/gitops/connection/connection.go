// Package connection finds the repository that a FluxConfig names, and decides whether the
// credentials of the management plane may be used for it.
//
// Users of a namespace choose the FluxConfig. An administrator binds the credentials to one
// repository, to its directories and to namespaces, with annotations of the Secret. Therefore
// nothing is sent to a repository before Deny has permitted it.
//
// The package never reads the content of a Secret and never connects to anything. Start with Find
// and Of.
package connection

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/git"
	"github.com/drover-dev/drover/internal/model/spec"
)

const gitHub = "https://github.com/"

// Repository is what a FluxConfig names, with defaults.
type Repository struct {
	URL, Branch string
	// Path is the directory of the management cluster. It is empty if the FluxConfig leaves it to
	// the name of that cluster.
	Path string
	// Namespace is the namespace of Flux and of the credentials.
	Namespace string
}

// Find returns a FluxConfig, or the GitOpsConfig of that name as a FluxConfig. The error is
// NotFound if there is neither.
func Find(ctx context.Context, reader client.Reader, key client.ObjectKey) (*anywherev1.FluxConfig, error) {
	found := &anywherev1.FluxConfig{}
	err := reader.Get(ctx, key, found)
	if !apierrors.IsNotFound(err) {
		return found, err
	}
	old := &anywherev1.GitOpsConfig{}
	switch other := reader.Get(ctx, key, old); {
	case apierrors.IsNotFound(other):
		return nil, err
	case other != nil:
		return nil, other
	}
	return old.FluxConfig(), nil
}

// Of returns the repository of a FluxConfig.
func Of(s anywherev1.FluxConfigSpec) (Repository, error) {
	r := Repository{Branch: s.Branch, Path: s.ClusterConfigPath, Namespace: s.SystemNamespace}
	if r.Branch == "" {
		r.Branch = spec.DefaultFluxBranch
	}
	if r.Namespace == "" {
		r.Namespace = spec.DefaultFluxSystem
	}
	switch {
	case (s.Github == nil) == (s.Git == nil):
		return Repository{}, errors.New("spec: set either github or git")
	case s.Github != nil:
		r.URL = gitHub + url.PathEscape(s.Github.Owner) + "/" + url.PathEscape(s.Github.Repository) + ".git"
	default:
		r.URL = s.Git.RepositoryURL
	}
	return r, checkPath(r.Path)
}

// checkPath rejects a path inside the directory of a cluster: what is there is applied with the
// privileges of that cluster's namespace.
func checkPath(dir string) error {
	for part := range strings.SplitSeq(path.Clean("/"+dir), "/") {
		if slices.Contains([]string{anywherev1.SystemNamespace, spec.DefaultFluxSystem, "workload-clusters"}, part) {
			return fmt.Errorf("spec.clusterConfigPath: %q is part of the directory of a cluster; use the directory of the management cluster", part)
		}
	}
	return nil
}

// Canonical returns the one form that all spellings of the URL have, or "" if the URL is invalid.
func (r Repository) Canonical() string {
	canonical, err := git.Canonical(r.URL)
	if err != nil {
		return ""
	}
	return canonical
}

// deny returns why a namespace may not use credentials for the repository, or "" if it may. The
// text doesn't say what the credentials are bound to.
func (r Repository) deny(secret metav1.Object, namespace string) string {
	bound, err := git.Canonical(secret.GetAnnotations()[anywherev1.GitURLAnnotation])
	if err != nil || bound != r.Canonical() {
		return fmt.Sprintf("Secret %q in namespace %q may not be sent to %q; ask an administrator to connect the repository with drover gitops enable",
			secret.GetName(), secret.GetNamespace(), r.URL)
	}
	return spec.DenyNamespace(secret, namespace)
}
