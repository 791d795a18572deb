package gitops

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"

	corev1 "k8s.io/api/core/v1"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/base/text"
	"github.com/drover-dev/drover/internal/git"
	"github.com/drover-dev/drover/internal/git/flux"
	"github.com/drover-dev/drover/internal/git/github"
	"github.com/drover-dev/drover/internal/model/gitops"
	"github.com/drover-dev/drover/internal/model/spec"
)

// maxNamed is how many clusters or secrets an error lists.
const maxNamed = 5

// CheckEnvironment checks that the environment has credentials for the repository. It sends no
// request.
func (e Enabling) CheckEnvironment() error {
	_, err := flux.FromEnvironment(e.FluxConfig.Spec, e.Getenv)
	return err
}

// Preflight checks that the spec of a management cluster can be committed: the credentials of the
// environment, that they may push to the branch, and what the repository has below its path. It
// changes nothing.
func (e Enabling) Preflight(ctx context.Context, c *spec.Config) error {
	remote, err := flux.FromEnvironment(e.FluxConfig.Spec, e.Getenv)
	if err != nil {
		return err
	}
	if exists, err := e.checkGitHub(ctx, remote); err != nil || !exists {
		return err
	}
	repository, err := git.New(remote, git.Options{})
	if err != nil {
		return err
	}
	if err := repository.CheckPush(ctx); err != nil {
		return err
	}
	tip, err := repository.Tip(ctx)
	if err != nil {
		return err
	}
	if err := e.checkFiles(tip.FS(), c); err != nil {
		return fmt.Errorf("checking repository %q: %w", remote.URL, err)
	}
	return nil
}

// IsConnected reports whether the plane has credentials that the FluxConfig may use.
func (p *Plane) IsConnected(ctx context.Context, c *anywherev1.FluxConfig) (bool, error) {
	secret, err := p.connected(ctx, c)
	return secret != nil, err
}

// CheckConnected is IsConnected, and checks that the credentials may push to the branch.
func (p *Plane) CheckConnected(ctx context.Context, c *anywherev1.FluxConfig) (bool, error) {
	secret, err := p.connected(ctx, c)
	if err != nil || secret == nil {
		return false, err
	}
	url, err := flux.URL(c.Spec)
	if err != nil {
		return false, err
	}
	remote, err := flux.FromSecret(secret, url, cmp.Or(c.Spec.Branch, spec.DefaultFluxBranch))
	if err != nil {
		return false, err
	}
	repository, err := git.New(remote, git.Options{})
	if err != nil {
		return false, err
	}
	return true, repository.CheckPush(ctx)
}

// connected returns the Secret with the credentials if it is bound to the repository and the
// namespace of a FluxConfig, or nil.
func (p *Plane) connected(ctx context.Context, c *anywherev1.FluxConfig) (*corev1.Secret, error) {
	url, err := flux.URL(c.Spec)
	if err != nil {
		return nil, err
	}
	secret, err := p.credentials(ctx, c.Spec.SystemNamespace)
	if err != nil || secret == nil || !sameRepository(secret.Annotations[anywherev1.GitURLAnnotation], url) || spec.DenyNamespace(secret, c.Namespace) != "" {
		return nil, err
	}
	return secret, nil
}

// checkGitHub checks the owner of a repository on GitHub, and reports whether the repository
// exists. Enable creates it otherwise.
func (e Enabling) checkGitHub(ctx context.Context, remote git.Remote) (exists bool, err error) {
	hub := e.FluxConfig.Spec.Github
	if hub == nil {
		return true, nil
	}
	c, err := github.New(github.Options{BaseURL: e.GitHub, Token: remote.Credentials.Password})
	if err != nil {
		return false, err
	}
	if err := c.CheckOwner(ctx, github.Owner{Name: hub.Owner, Personal: hub.Personal}); err != nil {
		return false, err
	}
	_, err = c.Repository(ctx, hub.Owner, hub.Repository)
	if errors.Is(err, github.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// checkFiles checks that the spec of a cluster can be written to the files of a repository.
func (e Enabling) checkFiles(files fs.FS, c *spec.Config) error {
	path := e.FluxConfig.Spec.ClusterConfigPath
	if e.New {
		if err := checkUnused(files, path); err != nil {
			return err
		}
	}
	at, err := gitops.Detect(files, path, c.Cluster)
	if err != nil {
		return err
	}
	changes, err := gitops.Write(files, at, c)
	if err != nil {
		return err
	}
	if found := changes.Secrets(); len(found) > 0 {
		lines := make([]string, len(found))
		for i := range found {
			lines[i] = found[i].String()
		}
		return fmt.Errorf("the files would contain secrets: %s", text.Clauses(lines, maxNamed))
	}
	return nil
}

// checkUnused rejects a path that has clusters: Flux would create them on the new cluster.
func checkUnused(files fs.FS, path string) error {
	fleet, err := gitops.Read(files, path)
	if err != nil || len(fleet.Clusters) == 0 {
		return err
	}
	names := make([]string, len(fleet.Clusters))
	for i := range fleet.Clusters {
		names[i] = fleet.Clusters[i].Location.Cluster
	}
	return fmt.Errorf("%q has clusters already (%s), which Flux would create again: choose another clusterConfigPath, or remove their files", fleet.Path, text.FirstN(names, maxNamed))
}
