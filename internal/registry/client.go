package registry

import (
	"bytes"
	"context"
	"crypto/tls"
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

	"github.com/drover-dev/drover/internal/base/pki"
)

// Access holds the address and credentials of a plane's registry.
type Access struct {
	// URL is https://host:port.
	URL          string
	CAFile       string
	PasswordFile string
}

// Client is a client of a plane's registry.
type Client struct {
	base     *url.URL
	http     *http.Client
	password string
}

// Connect reads the files of an Access and returns a client. It makes no request.
func Connect(a Access) (*Client, error) {
	base, err := url.Parse(a.URL)
	if err != nil || base.Host == "" {
		return nil, fmt.Errorf("invalid registry URL %q", a.URL)
	}
	ca, err := os.ReadFile(a.CAFile)
	if err != nil {
		return nil, fmt.Errorf("reading the registry's CA: %w", err)
	}
	roots, err := pki.Pool(ca)
	if err != nil {
		return nil, fmt.Errorf("reading the registry's CA %q: %w", a.CAFile, err)
	}
	password, err := os.ReadFile(a.PasswordFile)
	if err != nil {
		return nil, fmt.Errorf("reading the registry's password: %w", err)
	}
	// No proxy: the registry runs on this machine.
	direct := &http.Transport{TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots}}
	return &Client{base: base, http: &http.Client{Transport: direct}, password: string(bytes.TrimSpace(password))}, nil
}

func (c *Client) options(ctx context.Context) []remote.Option {
	return []remote.Option{
		remote.WithContext(ctx), remote.WithTransport(c.http.Transport), remote.WithUserAgent("drover"),
		remote.WithAuth(&authn.Basic{Username: User, Password: c.password}),
	}
}

// Pushed is the location of a pushed chart.
type Pushed struct {
	// Reference has the tag, Digest is that of the manifest.
	Reference string `json:"reference"`
	Digest    string `json:"digest"`
}

// Push pushes a chart below a repository and reads its content back.
func (c *Client) Push(ctx context.Context, below string, chart *Chart) (Pushed, error) {
	a, err := chart.artifact()
	if err != nil {
		return Pushed{}, err
	}
	repository, err := name.NewRepository(path.Join(c.base.Host, below, chart.Name))
	if err != nil {
		return Pushed{}, fmt.Errorf("invalid repository name %q: use lower-case words and slashes", below)
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

// check reads content back. A registry doesn't overwrite existing content, so a push doesn't repair
// damaged content.
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
		return fmt.Errorf("content %s in the registry is damaged\nRun `drover registry gc` to delete it, and push again", digest)
	}
	return nil
}

// manifest is an encoded manifest.
type manifest []byte

// RawManifest implements remote.Taggable.
func (m manifest) RawManifest() ([]byte, error) { return m, nil }

// MediaType sets the content type of the request.
func (m manifest) MediaType() (types.MediaType, error) { return types.OCIManifestSchema1, nil }

// Repository is a repository and its tags.
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
		if err != nil && (!errors.As(err, &answer) || answer.StatusCode != http.StatusNotFound) { // a repository without tags
			return nil, fmt.Errorf("listing the tags of %q: %w", n, c.explain(err))
		}
		list = append(list, Repository{Name: n, Tags: append([]string{}, slices.Sorted(slices.Values(tags))...)})
	}
	return list, nil
}

// Collect deletes unreferenced content that is older than age.
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
		return Collected{}, fmt.Errorf("deleting unreferenced content: %w", c.explain(err))
	}
	defer response.Body.Close()
	var done Collected
	if response.StatusCode == http.StatusOK {
		err := json.NewDecoder(response.Body).Decode(&done)
		return done, err
	}
	text, _ := io.ReadAll(io.LimitReader(response.Body, 1<<12))
	return done, fmt.Errorf("deleting unreferenced content: registry responded %s: %s", response.Status, strings.TrimSpace(string(text)))
}

// explain adds a hint to errors that the user can fix.
func (c *Client) explain(err error) error {
	var answer *transport.Error
	var failed *url.Error
	switch {
	case errors.As(err, &answer) && answer.StatusCode == http.StatusUnauthorized:
		return fmt.Errorf("registry %s rejected the password of this home; it may belong to another plane", c.base.Host)
	case errors.As(err, &failed):
		return fmt.Errorf("connecting to registry %s: %w\nTry: drover status", c.base.Host, failed.Err)
	default:
		return err
	}
}
