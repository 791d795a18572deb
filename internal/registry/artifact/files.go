package artifact

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

func (r *repositories) client(ref *reference) (*http.Client, error) {
	transport, err := r.clients.repository(&ref.Access, ref.base.Host)
	if err != nil {
		return nil, err
	}
	credentials, err := ref.Access.credentials(ref.base.Host, ref.base.Path)
	if err != nil {
		return nil, err
	}
	return &http.Client{Transport: &login{
		next: transport, to: ref.base, username: credentials.Username, password: credentials.Password,
	}}, nil
}

// download downloads the archive. If it doesn't match the index, the cached index may be outdated,
// and is requested again next time.
func (r *repositories) download(ctx context.Context, ref *reference, resolved Resolved) ([]byte, error) {
	e, err := r.entry(ctx, ref, resolved)
	if err != nil {
		return nil, err
	}
	if e.digest != "" && resolved.Digest != "" && e.digest != resolved.Digest {
		return nil, fmt.Errorf("%w: version %q is now %s, not %s", ErrInvalid, e.version, e.digest, resolved.Digest)
	}
	data, err := r.file(ctx, ref, e.addresses(ref, ""), maxArchive)
	if err == nil && e.digest != "" && contentDigest(data) != e.digest {
		err = fmt.Errorf("%w: the digest of the archive is %s, but %s in the index", ErrInvalid, contentDigest(data), e.digest)
	}
	if errors.Is(err, ErrInvalid) || errors.Is(err, ErrNotFound) {
		r.outdated(ref)
	}
	return data, err
}

func (r *repositories) provenance(ctx context.Context, ref *reference, resolved Resolved) ([]byte, error) {
	e, err := r.entry(ctx, ref, resolved)
	if err != nil {
		return nil, err
	}
	return r.file(ctx, ref, e.addresses(ref, ".prov"), maxProvenance)
}

func (*repositories) signatures(context.Context, *reference, Resolved) (string, []signature, error) {
	return "", nil, fmt.Errorf("%w: cosign requires a registry; chart repositories use provenance files", ErrInvalid)
}

func (r *repositories) entry(ctx context.Context, ref *reference, resolved Resolved) (entry, error) {
	e, _, err := r.find(ctx, ref, func(i index) (entry, error) { return i.exactly(ref.Name, resolved.Version) })
	return e, err
}

// outdated makes the next use of the index request it again.
func (r *repositories) outdated(ref *reference) {
	if k := r.have(ref); k != nil {
		old := *k
		old.at = time.Time{}
		r.indexes.Add(ref.place, &old)
	}
}

// file downloads from the first address that works.
func (r *repositories) file(ctx context.Context, ref *reference, addresses []*url.URL, limit int64) ([]byte, error) {
	client, err := r.client(ref)
	if err != nil {
		return nil, err
	}
	var failed error
	for _, address := range addresses {
		// Some servers report gzip as the encoding of an archive, and the client would decompress
		// it.
		var data []byte
		_, err := get(ctx, client, request{address, http.Header{"Accept-Encoding": {"identity"}}}, func(body io.Reader) (err error) {
			data, err = readAll(body, limit)
			return err
		})
		if err == nil {
			return data, nil
		}
		failed = errors.Join(failed, err)
	}
	return nil, failed
}

// addresses returns the URLs of the archive of an entry, or of the file with the suffix beside it.
func (e entry) addresses(ref *reference, suffix string) []*url.URL {
	var all []*url.URL
	for _, named := range e.urls {
		full := address(ref, named)
		full.Path += suffix
		if full.RawPath != "" {
			full.RawPath += suffix
		}
		all = append(all, full)
	}
	return all
}

// address returns the URL of a file, which may be relative to the repository. The query of the
// repository's URL, which may contain credentials, is added only for files of the repository.
func address(ref *reference, file string) *url.URL {
	directory := *ref.base
	directory.Path = strings.TrimSuffix(directory.Path, "/") + "/"
	if directory.RawPath != "" {
		directory.RawPath = strings.TrimSuffix(directory.RawPath, "/") + "/"
	}
	named, err := url.Parse(file)
	if err != nil {
		named = &url.URL{Path: file}
	}
	full := directory.ResolveReference(named)
	full.User = nil
	if full.RawQuery == "" && full.Scheme == ref.base.Scheme && full.Host == ref.base.Host {
		full.RawQuery = ref.base.RawQuery
	}
	return full
}
