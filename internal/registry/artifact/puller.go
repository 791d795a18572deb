package artifact

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"path"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"github.com/drover-dev/drover/internal/base/bounded"
)

// puller reads one repository of a registry. It logs in once and reuses its token.
type puller struct {
	*remote.Puller

	repository name.Repository
}

func (r *registries) puller(ref *reference) (*puller, error) {
	key := digestOf(ref.place, ref.Name)
	if found, ok := r.pullers.Get(key); ok {
		return found.(*puller), nil
	}
	var options []name.Option
	if r.clients.plainHTTP {
		options = append(options, name.Insecure) // tries TLS first
	}
	repository, err := name.NewRepository(path.Join(ref.base.Host, ref.base.Path, ref.Name), options...)
	if err != nil {
		return nil, fmt.Errorf("%w: the name is not valid in a registry", ErrInvalid)
	}
	credentials, err := ref.Access.credentials(repository.RegistryStr(), repository.RepositoryStr())
	if err != nil {
		return nil, err
	}
	connections, err := r.clients.registry(&ref.Access, repository.RegistryStr())
	if err != nil {
		return nil, err
	}
	pull, err := remote.NewPuller(remote.WithTransport(connections), remote.WithAuth(authn.FromConfig(credentials)),
		remote.WithUserAgent("drover"), remote.WithRetryBackoff(remote.Backoff{Duration: 200 * time.Millisecond, Factor: 3, Steps: 2}))
	if err != nil {
		return nil, fmt.Errorf("connecting to %q: %w", ref.base.Host, err)
	}
	p := &puller{Puller: pull, repository: repository}
	r.pullers.Add(key, p)
	return p, nil
}

func (p *puller) blob(ctx context.Context, digest string, limit int64) ([]byte, error) {
	layer, err := p.Layer(bounded.WithBlob(ctx, digest), p.repository.Digest(digest))
	if err != nil {
		return nil, fmt.Errorf("requesting %s: %w", digest, registryError(err))
	}
	body, err := layer.Compressed()
	if err != nil {
		return nil, fmt.Errorf("requesting %s: %w", digest, registryError(err))
	}
	defer body.Close()
	data, err := readAll(body, limit)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", digest, registryError(err))
	}
	return data, nil
}

// registryError converts an error of the library and removes URLs from it.
func registryError(err error) error {
	// Where plain HTTP is allowed, it is tried next, and the response of a TLS server is
	// meaningless.
	var distrusted *tls.CertificateVerificationError
	if errors.As(err, &distrusted) {
		return distrusted
	}
	var answered *transport.Error
	if !errors.As(err, &answered) {
		return tooLarge(withoutURL(err))
	}
	status := statusError(answered.StatusCode)
	if len(answered.Errors) > 0 {
		return fmt.Errorf("%w, %s", status, answered.Errors[0].Code)
	}
	return status
}
