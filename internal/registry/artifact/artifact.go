// Package artifact downloads packages from HTTP chart repositories and OCI registries, and caches
// them on disk by the digest of their content, so that each is downloaded once.
//
// It doesn't interpret the content of packages. Credentials are kept in memory only. Start with
// Store.Resolve, then Store.Fetch.
package artifact

import "errors"

// Ref identifies a package.
type Ref struct {
	// URL is the URL of a chart repository (https:// or http://), or oci:// with a registry and the
	// parent repository.
	URL string
	// Name is the name in the repository. It may contain slashes.
	Name string
	// Version is an exact version, a range, or empty for the newest. Registries also support
	// digests, sha256:….
	Version string
	Access  Access
	// Verify is nil if unsigned packages are accepted.
	Verify *Verification
}

// Access contains the credentials and TLS settings of a repository or registry. All fields are
// optional.
type Access struct {
	Username, Password string
	// DockerConfig is a config.json of Docker. Its entry for the host is used, also for
	// repositories.
	DockerConfig []byte
	// CA is trusted in addition to the CAs of the system.
	CA []byte
	// SkipTLSVerify disables the verification of certificates.
	SkipTLSVerify bool
}

// Verification configures the verification of signatures.
type Verification struct {
	// Provider is cosign or helm.
	Provider string
	// Keys are public keys or keyrings by the name that messages use.
	Keys map[string][]byte
}

// Resolved is the version and the content that a Ref currently refers to.
type Resolved struct {
	Version string
	// Digest is the digest of the archive, sha256:….
	Digest string
}

// Errors that a retry doesn't fix. They are wrapped with the reference.
var (
	// ErrNotFound is returned if the package or version doesn't exist.
	ErrNotFound = errors.New("not found")
	// ErrForbidden is returned if the credentials are missing or insufficient.
	ErrForbidden = errors.New("access denied")
	// ErrUnverified is returned if no signature matches a key.
	ErrUnverified = errors.New("not signed with a trusted key")
	// ErrInvalid is returned for invalid references, and for content that doesn't match its digest.
	ErrInvalid = errors.New("invalid")
)
