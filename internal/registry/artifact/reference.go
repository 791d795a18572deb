package artifact

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"net/url"
	"strconv"
	"strings"
)

// reference is a parsed Ref.
type reference struct {
	Ref

	// base has no userinfo.
	base *url.URL
	oci  bool
	// place identifies a repository together with the credentials for it.
	place string
	// key identifies a package and its version in a place.
	key string
}

func parse(ref Ref) (*reference, error) {
	base, err := url.Parse(ref.URL)
	if err != nil || base.Host == "" { // the error may contain a password
		return nil, fmt.Errorf("%w: the address of the repository is not a URL", ErrInvalid)
	}
	if ref.Name == "" {
		return nil, fmt.Errorf("%w: the name of the package in %q is empty", ErrInvalid, redact(base))
	}
	if ref.Access.Username == "" && base.User != nil {
		ref.Access.Username = base.User.Username()
		ref.Access.Password, _ = base.User.Password()
	}
	base.User = nil
	ref.Version = strings.TrimSpace(ref.Version)
	r := &reference{Ref: ref, base: base}
	switch strings.ToLower(base.Scheme) {
	case "oci":
		r.oci = true
	case "http", "https":
	default:
		return nil, fmt.Errorf("%w: the scheme of %q must be https:// or oci://", ErrInvalid, redact(base))
	}
	r.place = digestOf(base.String(), ref.Access.Username, ref.Access.Password, string(ref.Access.DockerConfig), ref.Access.tls())
	r.key = digestOf(r.place, ref.Name, ref.Version)
	return r, nil
}

// tls identifies the TLS settings.
func (a *Access) tls() string { return strconv.FormatBool(a.SkipTLSVerify) + digestOf(string(a.CA)) }

// String names the package in errors.
func (r *reference) String() string {
	text := strconv.Quote(r.Name)
	if r.Version != "" {
		text += " in version " + strconv.Quote(r.Version)
	}
	return text + " from " + strconv.Quote(redact(r.base))
}

// redact removes the query and the userinfo of a URL, which may contain credentials.
func redact(u *url.URL) string {
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

// digestOf returns a digest of the parts and their lengths.
func digestOf(parts ...string) string {
	sum := sha256.New()
	for _, part := range parts {
		writePart(sum, part)
	}
	return hex.EncodeToString(sum.Sum(nil))
}

func writePart(sum hash.Hash, part string) {
	_, _ = fmt.Fprintf(sum, "%d:%s", len(part), part)
}

const digestPrefix = "sha256:"

// contentDigest returns the digest of an archive.
func contentDigest(data []byte) string {
	sum := sha256.Sum256(data)
	return digestPrefix + hex.EncodeToString(sum[:])
}

// parseDigest parses a sha256 digest, with or without the prefix.
func parseDigest(text string) (string, bool) {
	text = strings.ToLower(strings.TrimPrefix(text, digestPrefix))
	if raw, err := hex.DecodeString(text); err != nil || len(raw) != sha256.Size {
		return "", false
	}
	return digestPrefix + text, true
}
