package flux

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/drover-dev/drover/internal/git"
)

// Keys of a Secret that a GitRepository refers to.
const (
	keyUsername   = "username"
	keyPassword   = "password" // With SSH, the passphrase of the private key.
	keyCA         = "ca.crt"
	keyOldCA      = "caFile"
	keyIdentity   = "identity"
	keyPublic     = "identity.pub"
	keyKnownHosts = "known_hosts"
	keyBearer     = "bearerToken"
)

// KeyToken is the key of a token for the API of the forge, if it isn't the password. Flux ignores
// it.
const KeyToken = "token"

// Keys of the key that signs commits, and of its passphrase. Flux ignores them.
const (
	keySigning           = "signing-key"
	keySigningPassphrase = "signing-passphrase"
)

// Renew returns the data of a Secret with other credentials of the repository. What isn't one of
// them stays, and so does the signing key unless there is a new one.
func Renew(old, fresh map[string][]byte) map[string][]byte {
	kept := []string{KeyToken}
	if len(fresh[keySigning]) == 0 {
		kept = append(kept, keySigning, keySigningPassphrase)
	}
	for _, key := range kept {
		if value, ok := old[key]; ok {
			fresh[key] = value
		}
	}
	return fresh
}

// Signs reports whether the data of a Secret has a key that signs commits.
func Signs(data map[string][]byte) bool { return len(data[keySigning]) > 0 }

// ToSecret returns a Secret with the credentials of a valid remote.
func ToSecret(remote git.Remote, name types.NamespacedName) (*corev1.Secret, error) {
	if err := remote.Validate(); err != nil {
		return nil, err
	}
	data, err := dataOf(remote)
	if err != nil {
		return nil, err
	}
	return &corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name},
		Type:       corev1.SecretTypeOpaque,
		Data:       data,
	}, nil
}

func dataOf(remote git.Remote) (map[string][]byte, error) {
	c, data := remote.Credentials, map[string][]byte{}
	put := func(key string, value []byte) {
		if len(value) > 0 {
			data[key] = value
		}
	}
	put(keySigning, c.SigningKey)
	put(keySigningPassphrase, []byte(c.SigningPassphrase))
	if !git.IsSSH(remote.URL) {
		if c.Username == "" && c.Password != "" {
			c.Username = defaultUser // Flux requires both.
		}
		put(keyUsername, []byte(c.Username))
		put(keyPassword, []byte(c.Password))
		put(keyCA, c.CA)
		return data, nil
	}
	public, err := c.PublicKey()
	if err != nil {
		return nil, err
	}
	put(keyIdentity, c.PrivateKey)
	put(keyPublic, public)
	put(keyKnownHosts, c.KnownHosts)
	put(keyPassword, []byte(c.Passphrase))
	return data, nil
}

// errBearer means that a Secret has credentials that Git servers other than Bitbucket's don't
// accept.
var errBearer = errors.New("bearerToken is not supported; use username and password")

// FromSecret adds the credentials in a Secret to a repository and a branch, and validates them
// together.
func FromSecret(secret *corev1.Secret, url, branch string) (git.Remote, error) {
	remote := git.Remote{URL: url, Branch: branch}
	data := secret.Data
	doing := fmt.Sprintf("reading Git credentials from Secret %q", secret.Namespace+"/"+secret.Name)
	switch {
	case git.IsSSH(url):
		remote.Credentials = git.Credentials{
			PrivateKey: data[keyIdentity], KnownHosts: data[keyKnownHosts], Passphrase: string(data[keyPassword]),
		}
	case len(data[keyBearer]) > 0 && len(data[keyPassword]) == 0:
		return git.Remote{}, fmt.Errorf("%s: %w", doing, errBearer)
	default:
		remote.Credentials = git.Credentials{Username: string(data[keyUsername]), Password: string(data[keyPassword]), CA: data[keyCA]}
		if len(remote.Credentials.CA) == 0 {
			remote.Credentials.CA = data[keyOldCA]
		}
	}
	remote.Credentials.SigningKey, remote.Credentials.SigningPassphrase = data[keySigning], string(data[keySigningPassphrase])
	if err := remote.Validate(); err != nil {
		return git.Remote{}, fmt.Errorf("%s: %w", doing, err)
	}
	return remote, nil
}
