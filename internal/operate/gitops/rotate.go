package gitops

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/git"
	"github.com/drover-dev/drover/internal/git/flux"
	"github.com/drover-dev/drover/internal/model/spec"
)

const (
	// rotateInterval is how often the server is asked whether it accepts a new key.
	rotateInterval = 5 * time.Second
	rsaBits        = 4096
	gitHubURL      = "https://github.com/"
)

// Algorithms are those of SSH keys, the default first.
func Algorithms() []string { return []string{"ed25519", "ecdsa", "rsa"} }

// Rotation replaces the credentials of the connected repository.
type Rotation struct {
	// System is the namespace of Flux, flux-system by default.
	System string
	// Algorithm is one of Algorithms.
	Algorithm string
	// Getenv reads new credentials for HTTPS from the environment, and a new signing key.
	Getenv func(string) string
	// Publish is called with the public half of a new key, in the format of authorized_keys. The
	// server has to accept it before it replaces the old one.
	Publish func(public []byte)
	// Interval is how often the server is asked; 5 seconds by default.
	Interval time.Duration
}

// errNotConnected means that there are no credentials to replace.
var errNotConnected = errors.New("no repository is connected: run `drover gitops enable` first")

// Rotate replaces the credentials of the connected repository, after the server has accepted the
// new ones. With SSH, it generates a key and waits until somebody has authorized it.
func (p *Plane) Rotate(ctx context.Context, r Rotation) (url string, err error) {
	secret, err := p.credentials(ctx, r.System)
	if err != nil {
		return "", err
	}
	if secret == nil || secret.Annotations[anywherev1.GitURLAnnotation] == "" {
		return "", errNotConnected
	}
	url = secret.Annotations[anywherev1.GitURLAnnotation]
	remote, err := r.renew(ctx, secret, url)
	if err != nil {
		return "", err
	}
	fresh, err := flux.ToSecret(remote, client.ObjectKeyFromObject(secret))
	if err != nil {
		return "", err
	}
	secret.Data = flux.Renew(secret.Data, fresh.Data)
	if err := p.Client.Update(ctx, secret, client.FieldOwner(anywherev1.FieldManagerCLI)); err != nil {
		return "", fmt.Errorf("writing Secret %q: %w", client.ObjectKeyFromObject(secret), err)
	}
	return url, nil
}

// renew returns the repository with new credentials that work.
func (r Rotation) renew(ctx context.Context, secret *corev1.Secret, url string) (git.Remote, error) {
	if !git.IsSSH(url) {
		remote, err := flux.FromEnvironment(specOf(url), r.Getenv)
		if err != nil {
			return git.Remote{}, err
		}
		_, err = tipID(ctx, remote)
		return remote, err
	}
	remote, err := flux.FromSecret(secret, url, spec.DefaultFluxBranch)
	if err != nil {
		return git.Remote{}, err
	}
	key, err := generate(r.Algorithm)
	if err != nil {
		return git.Remote{}, err
	}
	remote.Credentials.PrivateKey, remote.Credentials.Passphrase = key, ""
	if err := flux.RenewSigning(&remote.Credentials, r.Getenv); err != nil {
		return git.Remote{}, err
	}
	public, err := remote.Credentials.PublicKey()
	if err != nil {
		return git.Remote{}, err
	}
	r.Publish(public)
	return remote, r.awaitAccess(ctx, remote)
}

// specOf returns how a FluxConfig names a repository, so that the variables for it are read.
func specOf(url string) anywherev1.FluxConfigSpec {
	owner, name, ok := strings.Cut(strings.TrimSuffix(strings.TrimPrefix(url, gitHubURL), ".git"), "/")
	if ok && strings.HasPrefix(url, gitHubURL) {
		return anywherev1.FluxConfigSpec{Github: &anywherev1.GithubProviderConfig{Owner: owner, Repository: name}}
	}
	return anywherev1.FluxConfigSpec{Git: &anywherev1.GitProviderConfig{RepositoryURL: url}}
}

// awaitAccess waits until the server accepts the credentials. It gives up on other errors.
func (r Rotation) awaitAccess(ctx context.Context, remote git.Remote) error {
	interval := r.Interval
	if interval == 0 {
		interval = rotateInterval
	}
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		_, err := tipID(ctx, remote)
		var denied *git.AuthenticationError
		var hidden *git.NotFoundError
		if err == nil || !errors.As(err, &denied) && !errors.As(err, &hidden) {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for the server to accept the new key, the old one stays: %w", errors.Join(ctx.Err(), err))
		case <-tick.C:
		}
	}
}

// generate returns a new private key in PEM.
func generate(algorithm string) ([]byte, error) {
	var key crypto.PrivateKey
	var err error
	switch algorithm {
	case "ed25519":
		_, key, err = ed25519.GenerateKey(rand.Reader)
	case "ecdsa":
		key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case "rsa":
		key, err = rsa.GenerateKey(rand.Reader, rsaBits)
	default:
		return nil, fmt.Errorf("%q is not an algorithm of SSH keys: use one of %s", algorithm, strings.Join(Algorithms(), ", "))
	}
	if err != nil {
		return nil, fmt.Errorf("generating a key: %w", err)
	}
	block, err := ssh.MarshalPrivateKey(key, "drover")
	if err != nil {
		return nil, fmt.Errorf("encoding a key: %w", err)
	}
	return pem.EncodeToMemory(block), nil
}
