package artifact

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
)

func (r *repositories) client(ref *reference) (*http.Client, error) {
	transport, err := r.clients.transport(&ref.Access)
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

// download gets the archive. If the index and the archive don't agree, the one that is known may be too old, and is asked for next time.
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
		err = fmt.Errorf("%w: the archive is %s, and %s in the index", ErrInvalid, contentDigest(data), e.digest)
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
	return "", nil, fmt.Errorf("%w: cosign signs what is in registries, a chart repository has provenance files", ErrInvalid)
}

func (r *repositories) entry(ctx context.Context, ref *reference, resolved Resolved) (entry, error) {
	e, _, err := r.find(ctx, ref, func(i index) (entry, error) { return i.exactly(ref.Name, resolved.Version) })
	return e, err
}

// outdated makes the index one that is asked for when it is needed, and sent if it changed.
func (r *repositories) outdated(ref *reference) {
	if k := r.have(ref); k != nil {
		old := *k
		old.at = time.Time{}
		r.indexes.Add(ref.place, &old)
	}
}

// file gets what is at the first address that has it.
func (r *repositories) file(ctx context.Context, ref *reference, addresses []*url.URL, limit int64) ([]byte, error) {
	client, err := r.client(ref)
	if err != nil {
		return nil, err
	}
	var failed error
	for _, address := range addresses {
		// Some servers say that an archive is encoded with gzip, and the client would unpack it.
		got, err := get(ctx, client, request{address: address, header: http.Header{"Accept-Encoding": {"identity"}}, limit: limit})
		if err == nil {
			return got.body, nil
		}
		failed = errors.Join(failed, err)
	}
	return nil, failed
}

// addresses are those of an entry's archive, or of a file beside it, whose name has the suffix.
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

// address is that of a file which is named relative to the repository, or by a URL of its own. The query of the repository's URL, which
// opens some of them, goes to files of the repository only.
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
