package storage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/drover-dev/drover/internal/base/bounded"
	"github.com/drover-dev/drover/internal/base/pki"
)

const (
	// amazon is the endpoint without another one.
	amazon        = "https://s3.amazonaws.com"
	defaultRegion = "us-east-1"
	// silence is how long an endpoint may take to begin a response, requestTimeout a small one.
	silence        = 2 * time.Minute
	requestTimeout = 2 * time.Minute
	// maxResponse is the maximum size of a list or an error, and maxArchive that of an archive.
	maxResponse = 16 << 20
	maxArchive  = 64 << 30
	// maxListed is how many objects a list may have.
	maxListed = 100_000
	// attempts is how often a request is sent.
	attempts = 3
)

// S3Access is how an S3-compatible endpoint is reached.
type S3Access struct {
	// Endpoint is its URL; empty for that of Amazon. Buckets are in the path of other endpoints.
	Endpoint string
	// Region is us-east-1 if empty.
	Region string
	// AccessKey and SecretKey sign requests. SessionToken belongs to temporary ones.
	AccessKey, SecretKey, SessionToken string
	// CA are trusted certificates in PEM, besides those of the system.
	CA []byte
}

// S3Variables are the names under which other tools know the settings, too: environment variables
// of a command, or keys of a Secret.
var S3Variables = struct{ Endpoint, EndpointOfAll, Region, DefaultRegion, AccessKey, SecretKey, SessionToken string }{
	"AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN",
}

// NewS3Access returns the access that variables describe, without certificates.
func NewS3Access(variable func(name string) string) S3Access {
	v := S3Variables
	first := func(names ...string) string {
		for _, name := range names {
			if value := strings.TrimSpace(variable(name)); value != "" {
				return value
			}
		}
		return ""
	}
	return S3Access{
		Endpoint: first(v.Endpoint, v.EndpointOfAll), Region: first(v.Region, v.DefaultRegion),
		AccessKey: first(v.AccessKey), SecretKey: first(v.SecretKey), SessionToken: first(v.SessionToken),
	}
}

// objects keeps archives as objects of a bucket, below a folder for the cluster.
type objects struct {
	// small sends requests with small responses, large others.
	small, large *minio.Core
	endpoint     string
	bucket       string
	folder       string
	temporary    string
}

// newObjects returns the storage at a bucket and an optional prefix.
func newObjects(location string, cluster Cluster, all Access) (*objects, error) {
	access := all.S3
	bucket, prefix, _ := strings.Cut(location, "/")
	if len(bucket) < 3 || strings.ContainsAny(location, "?#@:\\ ") {
		return nil, fmt.Errorf("invalid location %q: use s3://BUCKET or s3://BUCKET/PREFIX; $%s names the endpoint", "s3://"+location, S3Variables.Endpoint)
	}
	if access.AccessKey == "" || access.SecretKey == "" {
		return nil, fmt.Errorf("no credentials for s3://%s: set %s and %s", location, S3Variables.AccessKey, S3Variables.SecretKey)
	}
	o := &objects{bucket: bucket, folder: strings.TrimPrefix(path.Join(prefix, cluster.Namespace, cluster.Name), "/") + "/", endpoint: access.Endpoint, temporary: all.Temporary}
	if o.endpoint == "" {
		o.endpoint = amazon
	}
	var err error
	if o.small, err = o.client(access, bounded.Limits{Peer: "S3 endpoint", Body: maxResponse, Timeout: requestTimeout}); err != nil {
		return nil, err
	}
	o.large, err = o.client(access, bounded.Limits{Peer: "S3 endpoint", Body: maxArchive})
	return o, err
}

// client returns a client whose responses have limits.
func (o *objects) client(access S3Access, limits bounded.Limits) (*minio.Core, error) {
	at, err := url.Parse(o.endpoint)
	if err != nil || at.Host == "" || at.Scheme != "https" && at.Scheme != "http" || strings.Trim(at.Path, "/") != "" || at.User != nil {
		return nil, fmt.Errorf("invalid S3 endpoint in %s: use a URL such as https://s3.example.com:9000", S3Variables.Endpoint)
	}
	trust, err := pki.ClientConfig(access.CA)
	if err != nil {
		return nil, fmt.Errorf("reading the CA of S3 endpoint %q: %w", o.endpoint, err)
	}
	lookup := minio.BucketLookupPath
	if o.endpoint == amazon {
		lookup = minio.BucketLookupAuto
	}
	region := access.Region
	if region == "" {
		region = defaultRegion // Without a region, each client would ask for it first.
	}
	return minio.NewCore(at.Host, &minio.Options{
		Creds:        credentials.NewStaticV4(access.AccessKey, access.SecretKey, access.SessionToken),
		Secure:       at.Scheme == "https",
		Transport:    bounded.NewPool(trust, silence).For(at.Host, limits),
		Region:       region,
		BucketLookup: lookup,
		MaxRetries:   attempts,
	})
}

func (o *objects) key(name string) string { return o.folder + name + snapshotSuffix }

func (o *objects) location(name string) string { return "s3://" + o.bucket + "/" + o.key(name) }

// wrap adds the endpoint and what an answer means to an error.
func (o *objects) wrap(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	hint := ""
	switch minio.ToErrorResponse(err).Code {
	case "NoSuchBucket":
		hint = "; create the bucket"
	case "AccessDenied":
		hint = "; the credentials need s3:ListBucket on the bucket, and s3:GetObject, s3:PutObject and s3:DeleteObject on its objects"
	case "SignatureDoesNotMatch", "InvalidAccessKeyId":
		hint = fmt.Sprintf("; correct %s and %s", S3Variables.AccessKey, S3Variables.SecretKey)
	case "AuthorizationHeaderMalformed", "PermanentRedirect":
		hint = fmt.Sprintf("; correct %s", S3Variables.Region)
	}
	return fmt.Errorf("%s at %s: %w%s", fmt.Sprintf(format, args...), o.endpoint, err, hint)
}

// Put implements Storage. The archive, which is encrypted, is a temporary file first: an upload has
// a size, and parts of it may be sent again.
func (o *objects) Put(ctx context.Context, name string, fill func(io.Writer) error) (Entry, error) {
	if err := o.checkFree(ctx, name); err != nil {
		return Entry{}, err
	}
	file, err := os.CreateTemp(o.temporary, "drover-snapshot-*")
	if err != nil {
		return Entry{}, err
	}
	defer os.Remove(file.Name())
	defer file.Close()
	if err := fill(file); err != nil {
		return Entry{}, err
	}
	size, err := file.Seek(0, io.SeekCurrent)
	if err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err != nil {
		return Entry{}, err
	}
	_, err = o.large.Client.PutObject(ctx, o.bucket, o.key(name), file, size, minio.PutObjectOptions{ContentType: "application/octet-stream"})
	if err != nil {
		return Entry{}, o.wrap(err, "uploading %s", o.location(name))
	}
	return Entry{Name: name, Size: size, Location: o.location(name)}, nil
}

// checkFree returns an error unless the endpoint responds and has no such object.
func (o *objects) checkFree(ctx context.Context, name string) error {
	all, err := o.list(ctx, o.key(name))
	if err == nil && len(all) > 0 {
		err = fmt.Errorf("%w: %s", ErrExists, o.location(name))
	}
	return err
}

// List implements Storage.
func (o *objects) List(ctx context.Context) ([]Entry, error) { return o.list(ctx, o.folder) }

// list returns the archives whose keys begin with a prefix.
func (o *objects) list(ctx context.Context, prefix string) ([]Entry, error) {
	ctx, cancel := context.WithTimeout(ctx, silence)
	defer cancel()
	var out []Entry
	listed := 0
	for found := range o.small.Client.ListObjects(ctx, o.bucket, minio.ListObjectsOptions{Prefix: prefix}) {
		listed++
		if found.Err == nil && listed > maxListed {
			found.Err = fmt.Errorf("more than %d objects", maxListed)
		}
		if found.Err != nil {
			return nil, o.wrap(found.Err, "listing s3://%s/%s", o.bucket, prefix)
		}
		name, ok := strings.CutSuffix(strings.TrimPrefix(found.Key, o.folder), snapshotSuffix)
		if ok && namePattern.MatchString(name) {
			out = append(out, Entry{Name: name, Size: found.Size, Location: o.location(name)})
		}
	}
	return out, nil
}

// Get implements Storage. What it returns can't be read twice: the second time, it might be another
// archive.
func (o *objects) Get(ctx context.Context, name string) (io.ReadCloser, error) {
	body, _, _, err := o.large.GetObject(ctx, o.bucket, o.key(name), minio.GetObjectOptions{})
	if isMissingObject(err) {
		return nil, fmt.Errorf("%w: %s", ErrNotFound, o.location(name))
	}
	if err != nil {
		return nil, o.wrap(err, "downloading %s", o.location(name))
	}
	return struct {
		io.Reader
		io.Closer
	}{body, body}, nil
}

// Delete implements Storage.
func (o *objects) Delete(ctx context.Context, name string) error {
	err := o.small.RemoveObject(ctx, o.bucket, o.key(name), minio.RemoveObjectOptions{})
	if isMissingObject(err) {
		return nil
	}
	return o.wrap(err, "deleting %s", o.location(name))
}

// isMissingObject reports whether there is no such object in a bucket that exists, as far as the
// endpoint tells.
func isMissingObject(err error) bool {
	var response minio.ErrorResponse
	return errors.As(err, &response) && response.StatusCode == http.StatusNotFound && response.Code != "NoSuchBucket"
}
