// Package access decides with which credentials a cluster talks to which Packet API, and hands out
// clients for it.
//
// A PacketCluster names a Secret, or uses what the manager was given. Clients are kept per URL and
// token, so that a limit the API sets on a token is known to all who use it; Secrets are watched,
// so that a rotated token is used at once. Tokens never leave this package except inside a client.
// Start with Source.For.
package access

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	infrav1 "github.com/drover-dev/drover/api/infrastructure/v1beta1"
	"github.com/drover-dev/drover/internal/base/contents"
	"github.com/drover-dev/drover/internal/metal/client"
	"github.com/drover-dev/drover/internal/model/spec"
)

// Keys of a credentials Secret, and names of the variables that the manager reads for the same
// purpose.
const (
	TokenKey = "PACKET_API_KEY"
	URLKey   = "METAL_API_URL"
	// CAKey is optional: the only CA that the API's certificate may be from, in PEM.
	CAKey = "METAL_API_CA"
)

// maxClients bounds the clients that are kept; tokens that were rotated away are forgotten with the
// rest.
const maxClients = 1024

// Error says why there is no client for a cluster, and what to do about it.
type Error struct{ Problem string }

func (e *Error) Error() string { return e.Problem }

// Credentials are a token and the API that it is for.
type Credentials struct {
	Token, URL string
	// CA is the only CA to trust, in PEM; those of the system if empty.
	CA string
}

// FromSecret reads the credentials in a Secret; parts may be missing.
func FromSecret(secret *corev1.Secret) Credentials {
	return Credentials{Token: value(secret, TokenKey), URL: value(secret, URLKey), CA: value(secret, CAKey)}
}

// Data returns the credentials in the form of a Secret.
func (c Credentials) Data() map[string][]byte {
	data := map[string][]byte{TokenKey: []byte(c.Token), URLKey: []byte(c.URL)}
	if c.CA != "" {
		data[CAKey] = []byte(c.CA)
	}
	return data
}

// Source hands out clients.
type Source struct {
	// Secrets reads Secrets.
	Secrets *contents.Store
	// Default is what the manager was given; parts may be empty.
	Default Credentials
	// UserAgent names the program to the API.
	UserAgent string
	// HTTP sends the requests; a client of its own if nil.
	HTTP *http.Client
	// Clock is the real one if nil.
	Clock clock.PassiveClock

	mu      sync.Mutex
	clients map[[sha256.Size]byte]*client.Client
}

// For returns the client of a cluster. The error is an *Error where the user has to do something.
func (s *Source) For(ctx context.Context, cluster *infrav1.PacketCluster) (*client.Client, error) {
	c, err := s.credentials(ctx, cluster)
	if err != nil {
		return nil, err
	}
	return s.client(c)
}

func (s *Source) credentials(ctx context.Context, cluster *infrav1.PacketCluster) (Credentials, error) {
	if cluster.Spec.CredentialsRef == nil {
		return s.managers(ctx, cluster)
	}
	key := ctrlclient.ObjectKey{Namespace: cluster.Namespace, Name: cluster.Spec.CredentialsRef.Name}
	secret, err := s.Secrets.Secret(ctx, key)
	if err != nil {
		if ctrlclient.IgnoreNotFound(err) == nil {
			return Credentials{}, &Error{fmt.Sprintf("Secret %q not found: create it with the key %s", key.Name, TokenKey)}
		}
		return Credentials{}, fmt.Errorf("reading credentials %q: %w", key, err)
	}
	c := FromSecret(secret)
	if c.URL == "" {
		c.URL, c.CA = s.Default.URL, firstOf(c.CA, s.Default.CA)
	}
	switch {
	case c.Token == "":
		return c, &Error{fmt.Sprintf("Secret %q has no token: set the key %s", key.Name, TokenKey)}
	case !sameURL(cluster.Spec.APIURL, c.URL):
		return c, &Error{fmt.Sprintf("Secret %q is not for spec.apiURL: ask an administrator to set its key %s to that URL, or remove spec.apiURL", key.Name, URLKey)}
	}
	return c, hasURL(c)
}

// sameURL reports whether a PacketCluster asks for the API that credentials are for. A token is
// never sent to a URL that only a PacketCluster names: whoever writes one may not read the token.
func sameURL(asked, url string) bool {
	return asked == "" || strings.TrimRight(asked, "/") == strings.TrimRight(url, "/")
}

// managers returns the manager's own credentials. They are not sent to an address that someone who
// may write a PacketCluster chose.
func (s *Source) managers(ctx context.Context, cluster *infrav1.PacketCluster) (Credentials, error) {
	if !sameURL(cluster.Spec.APIURL, s.Default.URL) {
		return Credentials{}, &Error{"The manager's credentials are not for spec.apiURL: set spec.credentialsRef to a Secret with credentials for it"}
	}
	if s.Default.Token == "" {
		return Credentials{}, &Error{fmt.Sprintf("No credentials: set spec.credentialsRef to a Secret, or start the manager with %s set", TokenKey)}
	}
	if err := s.denyLocal(ctx, cluster.Namespace); err != nil {
		return Credentials{}, err
	}
	return s.Default, hasURL(s.Default)
}

// denyLocal returns an error if the manager's credentials are those of local machines, which are
// closed to the namespace. Whoever writes a PacketCluster there must not get them without a name.
func (s *Source) denyLocal(ctx context.Context, namespace string) error {
	key := ctrlclient.ObjectKey{Namespace: anywherev1.SystemNamespace, Name: anywherev1.LocalCredentials}
	secret, err := s.Secrets.Secret(ctx, key)
	if ctrlclient.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading credentials %q: %w", key, err)
	}
	if err != nil || FromSecret(secret).Token != s.Default.Token {
		return nil //nolint:nilerr // There are no local machines.
	}
	if problem := spec.DenyCredentials(secret, namespace); problem != "" {
		return &Error{"The manager's credentials are those of local machines: " + problem}
	}
	return nil
}

func hasURL(c Credentials) error {
	if c.URL == "" {
		return &Error{fmt.Sprintf("No Packet API: set the key %s of the credentials, or the manager's flag --metal-api-url", URLKey)}
	}
	return nil
}

func (s *Source) client(c Credentials) (*client.Client, error) {
	key := sha256.Sum256([]byte(c.URL + "\x00" + c.Token + "\x00" + c.CA))
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.clients[key]; known != nil {
		return known, nil
	}
	made, err := client.New(client.Options{URL: c.URL, Token: c.Token, CA: []byte(c.CA), UserAgent: s.UserAgent, HTTP: s.HTTP, Clock: s.Clock})
	if err != nil {
		return nil, &Error{err.Error()}
	}
	if s.clients == nil || len(s.clients) >= maxClients {
		s.clients = map[[sha256.Size]byte]*client.Client{}
	}
	s.clients[key] = made
	return made, nil
}

// IsProblem says whether err is for the user to solve, and returns what to tell.
func IsProblem(err error) (string, bool) {
	var e *Error
	if errors.As(err, &e) {
		return e.Problem, true
	}
	return "", false
}

func value(secret *corev1.Secret, key string) string {
	return strings.TrimSpace(string(secret.Data[key]))
}

func firstOf(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}
