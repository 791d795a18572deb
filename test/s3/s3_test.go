// Package s3 tests storages of snapshots with an S3-compatible server that others wrote, which
// verifies signatures. It is in a module of its own, so that it doesn't become a dependency of
// Drover.
package s3

import (
	"bytes"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/drover-dev/drover/internal/base/pki"
	"github.com/drover-dev/drover/internal/model/backup/storage"
	"github.com/drover-dev/drover/internal/test/inputs"
	"github.com/drover-dev/drover/internal/test/kubetest"
)

const (
	accessKey, secretKey = "snapshots", "correct-horse-battery"
	region               = "eu-central-1"
	bucket               = "etcd-snapshots"
	first, second, third = "20260102T030405Z", "20260103T030405Z", "20260104T030405Z"
)

var dev = storage.Cluster{Namespace: "default", Name: "dev"}

// newServer starts a server with an empty bucket, and returns how to reach it.
func newServer(t *testing.T) storage.S3Access {
	t.Helper()
	dir := t.TempDir()
	ca := certificates(t, dir)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	listener.Close()
	cmd := exec.CommandContext(t.Context(), compile(t), dir, address, filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"))
	cmd.Env = append(os.Environ(), "AWS_ACCESS_KEY_ID="+accessKey, "AWS_SECRET_ACCESS_KEY="+secretKey, "AWS_REGION="+region)
	cmd.Stderr = t.Output()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Wait() })
	access := storage.S3Access{Endpoint: "https://" + address, Region: region, AccessKey: accessKey, SecretKey: secretKey, CA: ca}
	makeBucket(t, access, address)
	return access
}

func compile(t *testing.T) string {
	t.Helper()
	inputs.DependOn(t, "server")
	binary := filepath.Join(t.TempDir(), "server")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", binary, ".")
	cmd.Dir = "server"
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("compiling the server: %v\n%s", err, out)
	}
	return binary
}

// certificates writes a certificate for the server and returns the CA.
func certificates(t *testing.T, dir string) []byte {
	t.Helper()
	authority, err := pki.NewAuthority("test", time.Now(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	template := pki.Template(pkix.Name{CommonName: "s3"}, []string{"127.0.0.1"}, time.Now(), time.Hour)
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	cert, key, err := authority.Issue(template)
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{"tls.crt": cert, "tls.key": key} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return authority.PEM()
}

// makeBucket waits for the server and creates the bucket.
func makeBucket(t *testing.T, access storage.S3Access, address string) {
	t.Helper()
	roots, err := pki.Pool(access.CA)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}
	t.Cleanup(transport.CloseIdleConnections)
	client, err := minio.New(address, &minio.Options{
		Creds: credentials.NewStaticV4(access.AccessKey, access.SecretKey, ""), Secure: true, Transport: transport, Region: region, MaxRetries: 1,
	})
	if err != nil {
		t.Fatal(err)
	}
	kubetest.Await(t, kubetest.Patience, func() error { return client.MakeBucket(t.Context(), bucket, minio.MakeBucketOptions{Region: region}) })
}

func open(t *testing.T, location string, access storage.S3Access) storage.Storage {
	t.Helper()
	s, err := storage.Open(location, dev, storage.Access{S3: access})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func fill(content []byte) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := w.Write(content)
		return err
	}
}

func names(t *testing.T, s storage.Storage) []string {
	t.Helper()
	all, err := s.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range storage.Newest(all) {
		out = append(out, e.Name)
	}
	return out
}

func TestSnapshotsInABucket(t *testing.T) {
	access := newServer(t)
	t.Run("archives are kept for each cluster", func(t *testing.T) { keep(t, access) })
	t.Run("large archives are uploaded in parts", func(t *testing.T) { upload(t, access) })
	t.Run("a failed archive doesn't appear", func(t *testing.T) { fail(t, access) })
	t.Run("errors say what to do", func(t *testing.T) { explain(t, access) })
}

func keep(t *testing.T, access storage.S3Access) {
	s := open(t, "s3://"+bucket+"/clusters", access)
	if got := names(t, s); got != nil {
		t.Fatalf("an empty bucket lists %v", got)
	}
	for _, name := range []string{second, first, third} {
		e, err := s.Put(t.Context(), name, fill([]byte("archive of "+name)))
		if err != nil || e.Name != name || e.Size != int64(len("archive of "+name)) || e.Location != "s3://"+bucket+"/clusters/default/dev/"+name+".snapshot" {
			t.Fatalf("put %+v: %v", e, err)
		}
	}
	if _, err := s.Put(t.Context(), first, fill(nil)); !errors.Is(err, storage.ErrExists) {
		t.Errorf("the same name again: %v", err)
	}
	if got := names(t, open(t, "s3://"+bucket, access)); got != nil {
		t.Errorf("the cluster has %v without the prefix", got)
	}
	if got := read(t, s, first); string(got) != "archive of "+first {
		t.Errorf("read %q", got)
	}
	if _, err := s.Get(t.Context(), "20260101T000000Z"); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("a missing archive: %v", err)
	}
	if gone, err := storage.Prune(t.Context(), s, 1); err != nil || len(gone) != 2 || !slices.Equal(names(t, s), []string{third}) {
		t.Errorf("pruned %v (%v), left %v", gone, err, names(t, s))
	}
	if err := s.Delete(t.Context(), first); err != nil {
		t.Errorf("deleting a missing archive: %v", err)
	}
}

func read(t *testing.T, s storage.Storage, name string) []byte {
	t.Helper()
	r, err := s.Get(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, ok := r.(io.Seeker); ok {
		t.Error("an archive that can be read twice may not be the same the second time")
	}
	data, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func upload(t *testing.T, access storage.S3Access) {
	s := open(t, "s3://"+bucket+"/large", access)
	content := make([]byte, 20<<20)
	_, _ = rand.Read(content)
	if e, err := s.Put(t.Context(), first, fill(content)); err != nil || e.Size != int64(len(content)) {
		t.Fatalf("put %+v: %v", e, err)
	}
	if got := read(t, s, first); !bytes.Equal(got, content) {
		t.Errorf("read %d bytes that differ from %d", len(got), len(content))
	}
}

func fail(t *testing.T, access storage.S3Access) {
	s, broken := open(t, "s3://"+bucket+"/failed", access), errors.New("broken")
	_, err := s.Put(t.Context(), first, func(w io.Writer) error { return errors.Join(fill([]byte("half"))(w), broken) })
	if got := names(t, s); !errors.Is(err, broken) || got != nil {
		t.Errorf("got %v, and the bucket lists %v", err, got)
	}
}

func explain(t *testing.T, access storage.S3Access) {
	closed := access
	closed.Endpoint = "https://127.0.0.1:1"
	for name, tt := range map[string]struct {
		change func(*storage.S3Access)
		bucket string
		want   string
	}{
		"a wrong secret key":       {func(a *storage.S3Access) { a.SecretKey = "wrong" }, bucket, "correct AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"},
		"an unknown access key":    {func(a *storage.S3Access) { a.AccessKey = "nobody" }, bucket, "access key"},
		"another region":           {func(a *storage.S3Access) { a.Region = "us-west-2" }, bucket, "correct AWS_REGION"},
		"a missing bucket":         {func(*storage.S3Access) {}, "missing-bucket", "create the bucket"},
		"an unknown CA":            {func(a *storage.S3Access) { a.CA = nil }, bucket, "certificate"},
		"an endpoint that is down": {func(a *storage.S3Access) { *a = closed }, bucket, "connection refused"},
	} {
		t.Run(name, func(t *testing.T) {
			a := access
			tt.change(&a)
			s := open(t, "s3://"+tt.bucket, a)
			_, err := s.Put(t.Context(), first, func(io.Writer) error {
				t.Error("a snapshot was taken although it can't be saved")
				return nil
			})
			if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), a.Endpoint) || strings.Contains(err.Error(), secretKey) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}
