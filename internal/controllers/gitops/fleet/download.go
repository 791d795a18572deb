package fleet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	"github.com/opencontainers/go-digest"

	"github.com/drover-dev/drover/internal/base/bounded"
)

// Limits of an artifact: a repository of thousands of clusters is much smaller.
const (
	maxArtifact     = 64 << 20
	downloadTimeout = time.Minute
)

// newClient returns a client for source-controller, which is trusted to be what Flux says, but not
// to answer in time.
func newClient() *http.Client {
	base := &http.Transport{Proxy: nil, MaxIdleConns: 1, IdleConnTimeout: time.Minute}
	return &http.Client{Transport: bounded.Transport(base, bounded.Limits{Peer: "source-controller", Body: maxArtifact, Timeout: downloadTimeout})}
}

// download returns the verified content of an artifact.
func download(ctx context.Context, c *http.Client, a *fluxmeta.Artifact) ([]byte, error) {
	want, err := digest.Parse(a.Digest)
	if err != nil {
		return nil, fmt.Errorf("reading the digest of artifact %q: %w", a.Revision, err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, a.URL, http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("downloading artifact %q: %w", a.Revision, err)
	}
	response, err := c.Do(request)
	if err != nil {
		return nil, fmt.Errorf("downloading artifact %q: %w", a.Revision, err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("downloading artifact %q: source-controller answered %s", a.Revision, response.Status)
	}
	var data bytes.Buffer
	verifier := want.Verifier()
	if _, err := io.Copy(io.MultiWriter(&data, verifier), response.Body); err != nil {
		return nil, fmt.Errorf("downloading artifact %q: %w", a.Revision, err)
	}
	if !verifier.Verified() {
		return nil, fmt.Errorf("downloading artifact %q: %w", a.Revision, errDigest)
	}
	return data.Bytes(), nil
}

// errDigest means that an artifact isn't what Flux has fetched.
var errDigest = errors.New("the content doesn't have the digest in the status of the GitRepository")
