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

// reference is a Ref that was looked at.
type reference struct {
	Ref

	// base has no userinfo.
	base *url.URL
	oci  bool
	// place is the same for all packages of a repository that are opened the same way.
	place string
	// key is the same for all that stand for the same.
	key string
}

func parse(ref Ref) (*reference, error) {
	base, err := url.Parse(ref.URL)
	if err != nil || base.Host == "" { // The error has the whole text in it, perhaps with a password.
		return nil, fmt.Errorf("%w: the address of the repository is not a URL", ErrInvalid)
	}
	if ref.Name == "" {
		return nil, fmt.Errorf("%w: no package is named in %q", ErrInvalid, redact(base))
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
		return nil, fmt.Errorf("%w: %q is neither https:// nor oci://", ErrInvalid, redact(base))
	}
	r.place = digestOf(base.String(), ref.Access.Username, ref.Access.Password, string(ref.Access.DockerConfig), ref.Access.tls())
	r.key = digestOf(r.place, ref.Name, ref.Version)
	return r, nil
}

// tls tells apart ways to trust a server.
func (a *Access) tls() string { return strconv.FormatBool(a.SkipTLSVerify) + digestOf(string(a.CA)) }

// String names the package in errors.
func (r *reference) String() string {
	text := strconv.Quote(r.Name)
	if r.Version != "" {
		text += " in version " + strconv.Quote(r.Version)
	}
	return text + " from " + strconv.Quote(redact(r.base))
}

// redact leaves what may be shown of a URL: queries and userinfo may be credentials.
func redact(u *url.URL) string {
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

// digestOf is the same for the same parts only: their lengths go in as well.
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

// contentDigest is that of an archive.
func contentDigest(data []byte) string {
	sum := sha256.Sum256(data)
	return digestPrefix + hex.EncodeToString(sum[:])
}

// parseDigest takes digests with and without what says their kind. It returns false for anything but a sha256.
func parseDigest(text string) (string, bool) {
	text = strings.ToLower(strings.TrimPrefix(text, digestPrefix))
	if raw, err := hex.DecodeString(text); err != nil || len(raw) != sha256.Size {
		return "", false
	}
	return digestPrefix + text, true
}
