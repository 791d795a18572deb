package registry

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Access is how the owner of a plane gets to its registry.
type Access struct {
	// URL is https://host:port.
	URL          string
	CAFile       string
	PasswordFile string
}

// Client speaks to a registry of Drover's.
type Client struct {
	base     *url.URL
	http     *http.Client
	password string
}

// Connect reads the files that are needed. It makes no request.
func Connect(a Access) (*Client, error) {
	base, err := url.Parse(a.URL)
	if err != nil || base.Host == "" {
		return nil, fmt.Errorf("the registry's address %q is not a URL", a.URL)
	}
	ca, err := os.ReadFile(a.CAFile)
	if err != nil {
		return nil, fmt.Errorf("reading the CA of the registry: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(ca) {
		return nil, fmt.Errorf("there is no certificate in %q", a.CAFile)
	}
	password, err := os.ReadFile(a.PasswordFile)
	if err != nil {
		return nil, fmt.Errorf("reading the password of the registry: %w", err)
	}
	// Without a proxy: the registry is here.
	trusting := &http.Transport{TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots}}
	return &Client{base: base, http: &http.Client{Transport: trusting}, password: string(bytes.TrimSpace(password))}, nil
}

func (c *Client) options(ctx context.Context) []remote.Option {
	return []remote.Option{
		remote.WithContext(ctx), remote.WithTransport(c.http.Transport), remote.WithUserAgent("drover"),
		remote.WithAuth(&authn.Basic{Username: User, Password: c.password}),
	}
}

// Pushed says where something is now.
type Pushed struct {
	// Reference has the tag, Digest is that of the manifest.
	Reference string `json:"reference"`
	Digest    string `json:"digest"`
}

// Push puts a chart below a repository, and looks whether it can be read back.
func (c *Client) Push(ctx context.Context, below string, chart *Chart) (Pushed, error) {
	a, err := chart.artefact()
	if err != nil {
		return Pushed{}, err
	}
	repository, err := name.NewRepository(path.Join(c.base.Host, below, chart.Name))
	if err != nil {
		return Pushed{}, fmt.Errorf("%q is not a name for a repository: use lower-case words and slashes", below)
	}
	for _, b := range a.blobs {
		if err := remote.WriteLayer(repository, static.NewLayer(b.content, types.MediaType(b.mediaType)), c.options(ctx)...); err != nil {
			return Pushed{}, fmt.Errorf("pushing chart %q: %w", chart.Name, c.explain(err))
		}
	}
	tag := repository.Tag(a.tag)
	if err := remote.Put(tag, manifest(a.manifest), c.options(ctx)...); err != nil {
		return Pushed{}, fmt.Errorf("pushing chart %q: %w", chart.Name, c.explain(err))
	}
	for _, b := range a.blobs {
		if err := c.check(ctx, repository, b); err != nil {
			return Pushed{}, err
		}
	}
	return Pushed{Reference: "oci://" + tag.String(), Digest: a.digest().String()}, nil
}

// check reads content back. A registry does not take content twice, so that what is damaged there stays damaged.
func (c *Client) check(ctx context.Context, repository name.Repository, b blob) error {
	digest := b.descriptor().Digest.String()
	layer, err := remote.Layer(repository.Digest(digest), c.options(ctx)...)
	if err != nil {
		return fmt.Errorf("reading %s back: %w", digest, c.explain(err))
	}
	content, err := layer.Compressed()
	if err != nil {
		return fmt.Errorf("reading %s back: %w", digest, c.explain(err))
	}
	defer content.Close()
	if there, err := io.ReadAll(content); err != nil || !bytes.Equal(there, b.content) {
		return fmt.Errorf("the registry has a damaged copy of %s: run `drover registry gc`, which removes it, and push again", digest)
	}
	return nil
}

// manifest is one that is sent as it is.
type manifest []byte

// RawManifest implements remote.Taggable.
func (m manifest) RawManifest() ([]byte, error) { return m, nil }

// MediaType is what the registry is told.
func (m manifest) MediaType() (types.MediaType, error) { return types.OCIManifestSchema1, nil }

// Repository is one of a registry.
type Repository struct {
	Name string   `json:"name"`
	Tags []string `json:"tags"`
}

// List returns all repositories and their tags.
func (c *Client) List(ctx context.Context) ([]Repository, error) {
	registry, err := name.NewRegistry(c.base.Host)
	if err != nil {
		return nil, err
	}
	names, err := remote.Catalog(ctx, registry, c.options(ctx)...)
	if err != nil {
		return nil, fmt.Errorf("listing repositories: %w", c.explain(err))
	}
	slices.Sort(names)
	list := make([]Repository, 0, len(names))
	for _, n := range names {
		tags, err := remote.List(registry.Repo(strings.Split(n, "/")...), c.options(ctx)...)
		var answer *transport.Error
		if err != nil && (!errors.As(err, &answer) || answer.StatusCode != http.StatusNotFound) { // The last tag may have gone.
			return nil, fmt.Errorf("listing the tags of %q: %w", n, c.explain(err))
		}
		list = append(list, Repository{Name: n, Tags: append([]string{}, slices.Sorted(slices.Values(tags))...)})
	}
	return list, nil
}

// Collect has the registry remove what nothing refers to and what is older than age.
func (c *Client) Collect(ctx context.Context, age time.Duration) (Collected, error) {
	where := c.base.JoinPath(collectPath)
	where.RawQuery = url.Values{"age": {age.String()}}.Encode()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, where.String(), http.NoBody)
	if err != nil {
		return Collected{}, err
	}
	request.SetBasicAuth(User, c.password)
	response, err := c.http.Do(request)
	if err != nil {
		return Collected{}, fmt.Errorf("removing unused content: %w", c.explain(err))
	}
	defer response.Body.Close()
	var done Collected
	if response.StatusCode == http.StatusOK {
		err := json.NewDecoder(response.Body).Decode(&done)
		return done, err
	}
	text, _ := io.ReadAll(io.LimitReader(response.Body, 1<<12))
	return done, fmt.Errorf("removing unused content: the registry answers %s: %s", response.Status, strings.TrimSpace(string(text)))
}

// explain says what to do about errors that a person can do something about.
func (c *Client) explain(err error) error {
	var answer *transport.Error
	var failed *url.Error
	switch {
	case errors.As(err, &answer) && answer.StatusCode == http.StatusUnauthorized:
		return fmt.Errorf("the registry at %s refuses the password of this home: is it that of another plane?", c.base.Host)
	case errors.As(err, &failed):
		return fmt.Errorf("the registry at %s does not answer (%w): see `drover status`", c.base.Host, failed.Err)
	default:
		return err
	}
}
