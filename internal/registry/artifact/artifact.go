// Package artifact gets packages from where people publish them, HTTP chart repositories and OCI registries, and keeps them on disk by the
// digest of their content, so that each is downloaded once, whoever asks for it and however often.
//
// It knows nothing of what is in a package. Credentials stay in memory. Start with Store.Resolve, then Store.Fetch.
package artifact

import "errors"

// Ref names a package.
type Ref struct {
	// URL is that of a repository, https:// or http://, or oci:// and everything of the package's name but its last part.
	URL string
	// Name is what the repository calls it. It may have slashes.
	Name string
	// Version is exact, or a range, or empty for the newest. A registry also knows digests, sha256:….
	Version string
	Access  Access
	// Verify is nil if unsigned packages will do.
	Verify *Verification
}

// Access opens a repository or a registry. All of it is optional.
type Access struct {
	Username, Password string
	// DockerConfig is a config.json, for registries and repositories alike: what it has for the host is used.
	DockerConfig []byte
	// CA is trusted besides the system's.
	CA []byte
	// SkipTLSVerify trusts everybody.
	SkipTLSVerify bool
}

// Verification is what a signature must match.
type Verification struct {
	// Provider is cosign or helm.
	Provider string
	// Keys are public keys, or a keyring, by the name that messages use.
	Keys map[string][]byte
}

// Resolved is what a Ref stands for at the moment.
type Resolved struct {
	Version string
	// Digest is that of the archive, sha256:….
	Digest string
}

// Errors that a retry does not mend. They are wrapped with what was asked for.
var (
	// ErrNotFound says that there is no such package or version.
	ErrNotFound = errors.New("not found")
	// ErrForbidden says that the credentials don't open it.
	ErrForbidden = errors.New("access denied")
	// ErrUnverified says that no key matches a signature, or that there is none.
	ErrUnverified = errors.New("not signed by a key that is trusted")
	// ErrInvalid says that the reference can't be used, or that what came is not what its digest says.
	ErrInvalid = errors.New("invalid")
)
