package gitops

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/git"
	"github.com/drover-dev/drover/internal/git/flux"
	"github.com/drover-dev/drover/internal/git/github"
	"github.com/drover-dev/drover/internal/model/spec"
)

// Enabling is a repository to connect.
type Enabling struct {
	// FluxConfig names the repository. Its namespace is opened, too.
	FluxConfig *anywherev1.FluxConfig
	// Namespaces are those whose clusters may use the repository; that of the FluxConfig by default.
	Namespaces []string
	// Replace permits to replace the credentials of another repository.
	Replace bool
	// Getenv reads the credentials from the environment.
	Getenv func(string) string
	// New means that the management plane is new, so that the repository must have no clusters of it.
	New bool
	// GitHub is the URL of GitHub's API, if it isn't the public one.
	GitHub string
}

// Enabled is what became of a repository.
type Enabled struct {
	URL    string `json:"url"`
	Branch string `json:"branch"`
	// Commit is the newest commit of the branch, or empty if the branch doesn't exist.
	Commit     string   `json:"commit,omitempty"`
	Namespaces []string `json:"namespaces"`
	// Signed is set if commits are signed.
	Signed bool `json:"signed,omitempty"`
	// RunsFlux is false if nothing applies the repository yet.
	RunsFlux bool `json:"runsFlux"`
}

// ReplaceError means that the credentials belong to another repository.
type ReplaceError struct{ Secret, Bound, Wanted string }

func (e *ReplaceError) Error() string {
	if e.Bound == "" {
		return fmt.Sprintf("Secret %q exists and was not created by Drover: use --replace to replace its credentials with those of %q", e.Secret, e.Wanted)
	}
	return fmt.Sprintf("repository %q is connected already: use --replace to connect %q instead", e.Bound, e.Wanted)
}

// Enable connects a repository: it verifies the credentials of the environment, stores them, and
// binds them to the repository and to namespaces. Repeating it updates them.
func (p *Plane) Enable(ctx context.Context, e Enabling) (*Enabled, error) {
	remote, err := flux.FromEnvironment(e.FluxConfig.Spec, e.Getenv)
	if err != nil {
		return nil, err
	}
	old, err := p.credentials(ctx, e.FluxConfig.Spec.SystemNamespace)
	if err != nil {
		return nil, err
	}
	if err := checkReplaced(old, remote.URL); err != nil && !e.Replace {
		return nil, err
	}
	commit, err := e.verify(ctx, remote)
	if err != nil {
		return nil, err
	}
	secret, err := e.secret(old, remote)
	if err != nil {
		return nil, err
	}
	if err := p.store(ctx, e, secret); err != nil {
		return nil, err
	}
	runs, err := p.RunsFlux()
	return &Enabled{
		URL: remote.URL, Branch: remote.Branch, Commit: commit, Namespaces: e.namespaces(), Signed: flux.Signs(secret.Data), RunsFlux: runs,
	}, err
}

func (e Enabling) namespaces() []string {
	all := append([]string{e.FluxConfig.Namespace}, e.Namespaces...)
	slices.Sort(all)
	return slices.Compact(all)
}

// checkReplaced rejects credentials of another repository.
func checkReplaced(old *corev1.Secret, url string) error {
	if old == nil || sameRepository(old.Annotations[anywherev1.GitURLAnnotation], url) {
		return nil
	}
	return &ReplaceError{Secret: client.ObjectKeyFromObject(old).String(), Bound: old.Annotations[anywherev1.GitURLAnnotation], Wanted: url}
}

// sameRepository reports whether two valid URLs name one repository.
func sameRepository(a, b string) bool {
	first, err := git.Canonical(a)
	if err != nil {
		return false
	}
	second, err := git.Canonical(b)
	return err == nil && first == second
}

// verify returns the newest commit. On GitHub, it creates a missing repository first.
func (e Enabling) verify(ctx context.Context, remote git.Remote) (string, error) {
	if hub := e.FluxConfig.Spec.Github; hub != nil {
		c, err := github.New(github.Options{BaseURL: e.GitHub, Token: remote.Credentials.Password})
		if err != nil {
			return "", err
		}
		owner := github.Owner{Name: hub.Owner, Personal: hub.Personal}
		if err := c.CheckOwner(ctx, owner); err != nil {
			return "", err
		}
		if _, err := c.EnsureRepository(ctx, owner, hub.Repository); err != nil {
			return "", err
		}
	}
	return tipID(ctx, remote)
}

// tipID returns the newest commit of a branch, which proves that the credentials work.
func tipID(ctx context.Context, remote git.Remote) (string, error) {
	repository, err := git.New(remote, git.Options{})
	if err != nil {
		return "", err
	}
	return repository.TipID(ctx)
}

// secret returns the Secret with the new credentials and their binding. That of another repository
// loses its binding to namespaces.
func (e Enabling) secret(old *corev1.Secret, remote git.Remote) (*corev1.Secret, error) {
	system := e.FluxConfig.Spec.SystemNamespace
	if system == "" {
		system = spec.DefaultFluxSystem
	}
	secret, err := flux.ToSecret(remote, types.NamespacedName{Namespace: system, Name: anywherev1.GitCredentials})
	if err != nil {
		return nil, err
	}
	if old != nil {
		data := secret.Data
		secret = old.DeepCopy()
		if checkReplaced(old, remote.URL) == nil {
			secret.Data = flux.Renew(old.Data, data)
		} else { // What else is in it belongs to another repository.
			secret.Data = data
			delete(secret.Annotations, anywherev1.CredentialsNamespacesAnnotation)
			delete(secret.Annotations, anywherev1.GitPathsAnnotation)
		}
	}
	metav1.SetMetaDataAnnotation(&secret.ObjectMeta, anywherev1.GitURLAnnotation, remote.URL)
	for _, namespace := range e.namespaces() {
		spec.AddNamespace(&secret.ObjectMeta, namespace)
	}
	openPath(&secret.ObjectMeta, e.FluxConfig.Spec.ClusterConfigPath)
	return secret, nil
}

// openPath adds a directory to those that FluxConfigs may name. Without one, they may name the
// default directory only.
func openPath(secret *metav1.ObjectMeta, dir string) {
	if dir == "" {
		return
	}
	open := strings.FieldsFunc(secret.Annotations[anywherev1.GitPathsAnnotation], func(r rune) bool { return r == ',' })
	if dir = strings.Trim(path.Clean("/"+dir), "/"); !slices.Contains(open, dir) {
		open = append(open, dir)
	}
	metav1.SetMetaDataAnnotation(secret, anywherev1.GitPathsAnnotation, strings.Join(open, ","))
}

// store writes the Secret and the FluxConfig.
func (p *Plane) store(ctx context.Context, e Enabling, secret *corev1.Secret) error {
	for _, namespace := range []string{secret.Namespace, e.FluxConfig.Namespace} {
		if err := p.ensureNamespace(ctx, namespace); err != nil {
			return err
		}
	}
	write := func() error { return p.Client.Update(ctx, secret, client.FieldOwner(anywherev1.FieldManagerCLI)) }
	if secret.UID == "" {
		write = func() error { return p.Client.Create(ctx, secret, client.FieldOwner(anywherev1.FieldManagerCLI)) }
	}
	if err := write(); err != nil {
		return fmt.Errorf("writing Secret %q: %w", client.ObjectKeyFromObject(secret), err)
	}
	err := p.Client.Create(ctx, e.FluxConfig, client.FieldOwner(anywherev1.FieldManagerCLI))
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating FluxConfig %q: %w", e.FluxConfig.Name, err)
	}
	return nil
}
