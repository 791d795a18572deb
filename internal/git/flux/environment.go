package flux

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/git"
)

// Environment variables with credentials. Those that name files have paths as values.
const (
	// EnvGitHubToken is a token for GitHub.
	EnvGitHubToken = "EKSA_GITHUB_TOKEN"
	// EnvPrivateKey names the file of a private key for SSH.
	EnvPrivateKey = "EKSA_GIT_PRIVATE_KEY"
	// EnvPassphrase decrypts the private key. It may be unset.
	EnvPassphrase = "EKSA_GIT_SSH_KEY_PASSPHRASE"
	// EnvKnownHosts names the file of known hosts for SSH.
	EnvKnownHosts = "EKSA_GIT_KNOWN_HOSTS"
	// EnvUsername and EnvPassword are credentials for HTTPS. The password may be a token.
	EnvUsername = "DROVER_GIT_USERNAME"
	EnvPassword = "DROVER_GIT_PASSWORD"
	// EnvCAFile names a file of certificates to trust for HTTPS. It may be unset.
	EnvCAFile = "DROVER_GIT_CA_FILE"
	// EnvSigningKey names the file of a private key that signs commits: one for SSH, or an armored
	// one for OpenPGP. It may be unset.
	EnvSigningKey = "DROVER_GIT_SIGNING_KEY"
	// EnvSigningPassphrase decrypts the signing key. It may be unset.
	EnvSigningPassphrase = "DROVER_GIT_SIGNING_PASSPHRASE"
)

const (
	defaultBranch = "main"
	gitHub        = "https://github.com/"
	defaultUser   = "git"
)

// reader reads variables and the files that they name, and collects problems.
type reader struct {
	getenv   func(string) string
	problems []string
}

// URL returns the URL of a FluxConfig's repository.
func URL(spec anywherev1.FluxConfigSpec) (string, error) {
	switch {
	case (spec.Github == nil) == (spec.Git == nil):
		return "", errors.New("reading a FluxConfig: set either github or git")
	case spec.Github != nil:
		return gitHub + url.PathEscape(spec.Github.Owner) + "/" + url.PathEscape(spec.Github.Repository) + ".git", nil
	}
	return spec.Git.RepositoryURL, nil
}

// FromEnvironment returns the repository of a FluxConfig, with the credentials that the environment
// has for it. It reports all problems at once, by the names of the variables.
func FromEnvironment(spec anywherev1.FluxConfigSpec, getenv func(string) string) (git.Remote, error) {
	at, err := URL(spec)
	if err != nil {
		return git.Remote{}, err
	}
	r := &reader{getenv: getenv}
	remote := git.Remote{URL: at, Branch: cmp.Or(spec.Branch, defaultBranch)}
	if spec.Github != nil {
		remote.Credentials = git.Credentials{Username: defaultUser, Password: r.required(EnvGitHubToken, "a GitHub token")}
	} else {
		remote.Credentials = r.generic(at)
	}
	r.signing(&remote.Credentials)
	if r.problems != nil {
		return git.Remote{}, fmt.Errorf("reading Git credentials: %s", strings.Join(r.problems, "; "))
	}
	return remote, remote.Validate()
}

// generic returns the credentials for a server of any kind.
func (r *reader) generic(to string) git.Credentials {
	if git.IsSSH(to) {
		return git.Credentials{
			PrivateKey: r.requiredFile(EnvPrivateKey, "a private key"),
			Passphrase: r.getenv(EnvPassphrase),
			KnownHosts: r.requiredFile(EnvKnownHosts, "known hosts"),
		}
	}
	return git.Credentials{
		Username: r.getenv(EnvUsername),
		Password: r.required(EnvPassword, "a password or token"),
		CA:       r.file(EnvCAFile),
	}
}

// RenewSigning replaces the key that signs commits by that of the environment, if it has one.
func RenewSigning(c *git.Credentials, getenv func(string) string) error {
	if getenv(EnvSigningKey) == "" && getenv(EnvSigningPassphrase) == "" {
		return nil
	}
	r := &reader{getenv: getenv}
	r.signing(c)
	if r.problems != nil {
		return fmt.Errorf("reading Git credentials: %s", strings.Join(r.problems, "; "))
	}
	return nil
}

// signing adds the key that signs commits.
func (r *reader) signing(c *git.Credentials) {
	c.SigningKey, c.SigningPassphrase = r.file(EnvSigningKey), r.getenv(EnvSigningPassphrase)
	if err := c.CheckSigning(); err != nil {
		r.problems = append(r.problems, fmt.Sprintf("%s and %s: %v", EnvSigningKey, EnvSigningPassphrase, err))
	}
}

func (r *reader) required(name, what string) string {
	value := strings.TrimSpace(r.getenv(name))
	if value == "" {
		r.problems = append(r.problems, fmt.Sprintf("set %s to %s", name, what))
	}
	return value
}

func (r *reader) requiredFile(name, what string) []byte {
	if r.getenv(name) == "" {
		r.problems = append(r.problems, fmt.Sprintf("set %s to the path of a file with %s", name, what))
		return nil
	}
	return r.file(name)
}

// file returns nil if the variable is not set.
func (r *reader) file(name string) []byte {
	path := r.getenv(name)
	if path == "" {
		return nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		r.problems = append(r.problems, fmt.Sprintf("reading the file of %s: %v", name, err))
	} else if len(data) == 0 {
		r.problems = append(r.problems, fmt.Sprintf("reading the file of %s: %q is empty", name, path))
	}
	return data
}
