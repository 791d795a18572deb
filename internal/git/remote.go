package git

import (
	"errors"
	"fmt"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"golang.org/x/crypto/ssh"

	"github.com/drover-dev/drover/internal/base/pki"
)

// Remote is a branch of a repository and the credentials to access it.
type Remote struct {
	// URL is https://host/path, ssh://user@host/path or user@host:path. It contains no password.
	// http:// is accepted for addresses of this host.
	URL string
	// Branch is a name without refs/heads/.
	Branch string
	// Credentials are required for SSH.
	Credentials Credentials
}

// Credentials prove the identity of both sides: Username and Password, or PrivateKey and its
// Passphrase, that of the client; CA or KnownHosts that of the server. SigningKey proves who made a
// commit.
type Credentials struct {
	// Username is "git" if it is empty and Password is set.
	Username string
	// Password is a password or a token.
	Password string
	// CA has certificates in PEM, which are trusted besides those of the system.
	CA []byte
	// PrivateKey is a key for SSH in PEM.
	PrivateKey []byte
	// Passphrase decrypts PrivateKey.
	Passphrase string
	// KnownHosts lists keys of servers, in the format of OpenSSH's known_hosts.
	KnownHosts []byte
	// SigningKey signs commits: an armored OpenPGP private key, or a private key for SSH. Without one,
	// commits are not signed.
	SigningKey []byte
	// SigningPassphrase decrypts SigningKey.
	SigningPassphrase string
}

// String hides the credentials from everything that is printed.
func (Credentials) String() string { return "[redacted]" }

// GoString hides the credentials from everything that is printed.
func (Credentials) GoString() string { return "[redacted]" }

// MarshalJSON hides the credentials from structured logs.
func (Credentials) MarshalJSON() ([]byte, error) { return []byte(`"[redacted]"`), nil }

// secrets lists what must not appear in a message.
func (c Credentials) secrets() []string {
	return []string{
		c.Password, c.Passphrase, strings.TrimSpace(string(c.PrivateKey)),
		c.SigningPassphrase, strings.TrimSpace(string(c.SigningKey)),
	}
}

// InvalidError means that a Remote can't work.
type InvalidError struct{ Problems []string }

func (e *InvalidError) Error() string {
	return "invalid Git repository: " + strings.Join(e.Problems, "; ")
}

// Validate reports all problems of a Remote at once, without connecting to anything.
func (r Remote) Validate() error {
	_, err := r.parse()
	return err
}

// parse returns the address of a valid Remote.
func (r Remote) parse() (address, error) {
	var problems []string
	at, err := parseAddress(r.URL)
	if err != nil {
		problems = append(problems, err.Error())
	}
	problems = append(problems, r.branchProblems()...)
	switch at.scheme {
	case schemeSSH:
		problems = append(problems, r.Credentials.sshProblems()...)
	case schemeHTTP, schemeHTTPS:
		problems = append(problems, r.Credentials.httpProblems()...)
	}
	if err := r.Credentials.CheckSigning(); err != nil {
		problems = append(problems, err.Error())
	}
	if problems != nil {
		return address{}, &InvalidError{problems}
	}
	return at, nil
}

func (r Remote) branchProblems() []string {
	if r.Branch == "" {
		return []string{"branch is required"}
	}
	if name := r.reference(); name.Validate() != nil || len(name) > maxReference || strings.HasPrefix(r.Branch, "-") {
		return []string{fmt.Sprintf("branch %.100q is not a valid name", r.Branch)}
	}
	return nil
}

// maxReference is how long the name of a branch may be; servers store it as a file.
const maxReference = 255

func (r Remote) reference() plumbing.ReferenceName { return plumbing.NewBranchReferenceName(r.Branch) }

func (c Credentials) sshProblems() []string {
	var problems []string
	if c.Password != "" || len(c.CA) > 0 {
		problems = append(problems, "password and CA are for https, not for ssh")
	}
	if len(c.PrivateKey) == 0 {
		problems = append(problems, "ssh requires a private key")
	} else if _, err := c.signer(); err != nil {
		problems = append(problems, err.Error())
	}
	if len(c.KnownHosts) == 0 {
		problems = append(problems, "ssh requires known hosts; get them with ssh-keyscan and compare the fingerprints")
	} else if _, err := readKnownHosts(c.KnownHosts); err != nil {
		problems = append(problems, err.Error())
	}
	return problems
}

func (c Credentials) httpProblems() []string {
	var problems []string
	if len(c.PrivateKey) > 0 || c.Passphrase != "" || len(c.KnownHosts) > 0 {
		problems = append(problems, "private key and known hosts are for ssh, not for https")
	}
	if c.Username != "" && c.Password == "" {
		problems = append(problems, "password is required for a user name")
	}
	if strings.Contains(c.Username, ":") {
		problems = append(problems, "user name contains a colon")
	}
	if len(c.CA) > 0 {
		if _, err := pki.Pool(c.CA); err != nil {
			problems = append(problems, "reading CA: "+err.Error())
		}
	}
	return problems
}

// signer parses the private key. Errors of the parser don't contain the key.
func (c Credentials) signer() (ssh.Signer, error) { return parseKey(c.PrivateKey, c.Passphrase) }

func parseKey(key []byte, passphrase string) (ssh.Signer, error) {
	signer, err := ssh.ParsePrivateKey(key)
	if _, encrypted := errors.AsType[*ssh.PassphraseMissingError](err); encrypted && passphrase != "" {
		signer, err = ssh.ParsePrivateKeyWithPassphrase(key, []byte(passphrase))
	}
	if err != nil {
		return nil, fmt.Errorf("reading private key: %w", err)
	}
	return signer, nil
}

// PublicKey returns the public half of the private key, in the format of authorized_keys.
func (c Credentials) PublicKey() ([]byte, error) {
	signer, err := c.signer()
	if err != nil {
		return nil, err
	}
	return ssh.MarshalAuthorizedKey(signer.PublicKey()), nil
}

// IsSSH reports whether a URL is one for SSH. Invalid URLs are not.
func IsSSH(url string) bool {
	at, err := parseAddress(url)
	return err == nil && at.scheme == schemeSSH
}
