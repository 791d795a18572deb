package transfer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/drover-dev/drover/internal/base/bounded"
	"github.com/drover-dev/drover/internal/base/pki"
)

const (
	defaultStall = time.Minute
	// maxLayer is larger than any layer.
	maxLayer = 64 << 30
	// readBack is the largest content that is read back after sending. Of larger content, only the
	// size is checked.
	readBack = 4 << 20
)

// Options configure a Registry.
type Options struct {
	// Address is host[:port][/path]. All repositories are below it.
	Address string
	// CA contains certificates to trust in addition to the system's.
	CA                       []byte
	PlainHTTP, SkipTLSVerify bool
	// Username and Password default to the credentials in the user's Docker config.
	Username, Password string
	// Stall is how long a request may make no progress. The default is a minute.
	Stall time.Duration
}

// Registry is a source and a target. Create one with Open.
type Registry struct {
	options Options
	pull    *remote.Puller
	push    *remote.Pusher

	mu     sync.Mutex
	others map[string]*Registry
}

// Open opens a registry. It makes no request.
func Open(o Options) (*Registry, error) {
	o.Address = strings.Trim(strings.TrimPrefix(o.Address, "oci://"), "/")
	if o.Address == "" {
		return nil, errors.New("the address of a registry is empty: want host[:port][/path]")
	}
	connections, err := connections(o)
	if err != nil {
		return nil, fmt.Errorf("opening registry %q: %w", o.Address, err)
	}
	login := remote.WithAuthFromKeychain(authn.DefaultKeychain)
	if o.Username != "" {
		login = remote.WithAuth(&authn.Basic{Username: o.Username, Password: o.Password})
	}
	common := []remote.Option{
		remote.WithTransport(connections), remote.WithUserAgent("drover"), login,
		remote.WithRetryBackoff(remote.Backoff{Duration: 100 * time.Millisecond, Factor: 3, Steps: 3}),
	}
	r := &Registry{options: o, others: map[string]*Registry{}}
	if r.pull, err = remote.NewPuller(common...); err != nil {
		return nil, fmt.Errorf("opening registry %q: %w", o.Address, err)
	}
	if r.push, err = remote.NewPusher(common...); err != nil {
		return nil, fmt.Errorf("opening registry %q: %w", o.Address, err)
	}
	return r, nil
}

func connections(o Options) (http.RoundTripper, error) {
	trust, err := pki.ClientConfig(o.CA)
	if err != nil {
		return nil, fmt.Errorf("reading the CA: %w", err)
	}
	trust.InsecureSkipVerify = o.SkipTLSVerify // the user requested it
	stall := o.Stall
	if stall == 0 {
		stall = defaultStall
	}
	// Layers are written to disk or to another registry as they arrive, so that they may be large.
	next := bounded.NewPool(trust, 0).ForRegistry(host(o.Address), bounded.Limits{Peer: "registry", Body: maxLayer})
	return &watch{stall: stall, plainHTTP: o.PlainHTTP, next: next}, nil
}

// String returns the address.
func (r *Registry) String() string { return "oci://" + r.options.Address }

// at returns the registry of a reference. Credentials are used only for their own host.
func (r *Registry) at(ref Ref) (*Registry, error) {
	if ref.Registry == "" || ref.Registry == r.options.Address {
		return r, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if other, ok := r.others[ref.Registry]; ok {
		return other, nil
	}
	o := r.options
	o.Address = ref.Registry
	if host(o.Address) != host(r.options.Address) {
		o.Username, o.Password = "", ""
	}
	other, err := Open(o)
	if err == nil {
		r.others[ref.Registry] = other
	}
	return other, err
}

func host(address string) string {
	before, _, _ := strings.Cut(address, "/")
	return before
}

func (r *Registry) repository(ref Ref) (name.Repository, error) {
	var options []name.Option
	if r.options.PlainHTTP {
		options = append(options, name.Insecure) // tries TLS first
	}
	repository, err := name.NewRepository(path.Join(r.options.Address, ref.Repository), options...)
	if err != nil {
		return repository, fmt.Errorf("invalid repository name %q: use lower-case words and slashes", path.Join(r.options.Address, ref.Repository))
	}
	return repository, nil
}

// place returns the registry and repository of a reference.
func (r *Registry) place(ref Ref) (*Registry, name.Repository, error) {
	there, err := r.at(ref)
	if err != nil {
		return nil, name.Repository{}, err
	}
	repository, err := there.repository(ref)
	return there, repository, err
}

// Manifest implements Source.
func (r *Registry) Manifest(ctx context.Context, ref Ref) (Manifest, error) {
	there, repository, err := r.place(ref)
	if err != nil {
		return Manifest{}, err
	}
	var wanted name.Reference = repository.Tag(ref.Tag)
	if ref.Digest != "" {
		wanted = repository.Digest(ref.Digest)
	}
	got, err := there.pull.Get(ctx, wanted)
	if err != nil {
		return Manifest{}, fmt.Errorf("requesting %q: %w", wanted, explain(err))
	}
	m := newManifest(got.MediaType, got.Manifest)
	if ref.Digest != "" && m.Digest.String() != ref.Digest {
		return Manifest{}, fmt.Errorf("requesting %q: %w", wanted, ErrDamaged)
	}
	return m, nil
}

// Blob implements Source.
func (r *Registry) Blob(ctx context.Context, ref Ref, d v1.Descriptor) (io.ReadCloser, error) {
	there, repository, err := r.place(ref)
	if err != nil {
		return nil, err
	}
	layer, err := there.pull.Layer(bounded.WithBlob(ctx, d.Digest.String()), repository.Digest(d.Digest.String()))
	if err != nil {
		return nil, fmt.Errorf("requesting %s of %q: %w", d.Digest, repository, explain(err))
	}
	body, err := layer.Compressed()
	if err != nil {
		return nil, fmt.Errorf("requesting %s of %q: %w", d.Digest, repository, explain(err))
	}
	return verified(body, d), nil
}
