package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/drover-dev/drover/internal/model/backup/storage"
)

// BackupTimeout is the timeout of clients that transfer backups.
const BackupTimeout = 10 * time.Minute

// Backups keeps the backups of a management cluster at the metal service that has its machines. It
// is an extension of the Packet API, which other services don't have.
type Backups struct {
	Client           *Client
	Project, Cluster string
}

func (b Backups) path(name string) string {
	path := "/drover/v1/projects/" + url.PathEscape(b.Project) + "/backups/" + url.PathEscape(b.Cluster)
	if name != "" {
		path += "/" + url.PathEscape(name)
	}
	return path
}

func (b Backups) location(name string) string {
	return "metal " + strings.TrimRight(b.Client.URL, "/") + b.path(name)
}

// Put implements storage.Storage. The content is in memory first, so that its size is announced.
func (b Backups) Put(ctx context.Context, name string, fill func(io.Writer) error) (storage.Entry, error) {
	var content bytes.Buffer
	if err := fill(&content); err != nil {
		return storage.Entry{}, err
	}
	size := int64(content.Len())
	err := b.send(ctx, name, &content)
	var refused *Error
	if errors.As(err, &refused) && refused.Status == http.StatusConflict {
		return storage.Entry{}, fmt.Errorf("%w: %s", storage.ErrExists, b.location(name))
	}
	return storage.Entry{Name: name, Size: size, Location: b.location(name)}, err
}

// List implements storage.Storage.
func (b Backups) List(ctx context.Context) ([]storage.Entry, error) {
	var out struct {
		Backups []storage.Entry `json:"backups"`
	}
	if err := b.Client.do(ctx, call{method: http.MethodGet, path: b.path("")}, &out); err != nil {
		return nil, err
	}
	var all []storage.Entry
	for _, e := range out.Backups {
		if storage.IsName(e.Name) {
			all = append(all, storage.Entry{Name: e.Name, Size: e.Size, Location: b.location(e.Name)})
		}
	}
	return all, nil
}

// errWriteOnly explains why backups aren't read through the API.
var errWriteOnly = errors.New("backups are read on the host of the metal service only, so that a token for machines doesn't open them")

// Get implements storage.Storage.
func (b Backups) Get(context.Context, string) (io.ReadCloser, error) { return nil, errWriteOnly }

// Delete implements storage.Storage.
func (b Backups) Delete(ctx context.Context, name string) error {
	err := b.Client.do(ctx, call{method: http.MethodDelete, path: b.path(name)}, nil)
	if Is(err, NotFound) {
		return nil
	}
	return err
}

// send uploads a body.
func (b Backups) send(ctx context.Context, name string, body *bytes.Buffer) error {
	r := call{method: http.MethodPut, path: b.path(name)}
	req, err := b.Client.request(ctx, r)
	if err != nil {
		return err
	}
	req.Body, req.ContentLength = io.NopCloser(body), int64(body.Len())
	req.Header.Set("Content-Type", "application/octet-stream")
	resp, err := b.Client.HTTP.Do(req)
	if err != nil {
		return r.fail(unsent(r.method, err))
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(resp.Body, maxItem))
	if refusal := classify(answer{method: r.method, path: r.path, status: resp.StatusCode, header: resp.Header, body: text}, b.Client.Clock.Now()); refusal != nil {
		return r.fail(refusal)
	}
	return nil
}
