package storage

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/drover-dev/drover/internal/test/artifacttest"
)

var dev = Cluster{Namespace: "default", Name: "dev"}

// storages returns each kind of storage for a cluster, in the same place for all clusters.
func storages(t *testing.T) map[string]func(Cluster) Storage {
	t.Helper()
	dir := t.TempDir()
	r := artifacttest.NewRegistry(t, artifacttest.RegistryOptions{ServerOptions: artifacttest.ServerOptions{TLS: true, Username: "u", Password: "p"}})
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(r.CA)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}
	t.Cleanup(transport.CloseIdleConnections)
	access := Access{Registry: RegistryAccess{Transport: transport, Auth: &authn.Basic{Username: "u", Password: "p"}}}
	at := func(location string) func(Cluster) Storage {
		return func(c Cluster) Storage {
			s, err := Open(location, c, access)
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
	}
	return map[string]func(Cluster) Storage{"directory": at(dir), "registry": at("oci://" + r.Host + "/snapshots")}
}

func fill(content string) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := io.WriteString(w, content)
		return err
	}
}

func names(t *testing.T, s Storage) []string {
	t.Helper()
	all, err := s.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range Newest(all) {
		out = append(out, e.Name)
	}
	return out
}

func read(t *testing.T, s Storage, name string) string {
	t.Helper()
	r, err := s.Get(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	data, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

const first, second, third = "20260102T030405Z", "20260103T030405Z", "20260104T030405Z"

func TestStoragesKeepArchivesOfEachCluster(t *testing.T) {
	for kind, of := range storages(t) {
		t.Run(kind, func(t *testing.T) {
			s := of(dev)
			if got := names(t, s); got != nil {
				t.Fatalf("an empty storage lists %v", got)
			}
			for _, name := range []string{second, first, third} {
				e, err := s.Put(t.Context(), name, fill("archive of "+name))
				if err != nil || e.Name != name || e.Size != int64(len("archive of "+name)) || !strings.Contains(e.Location, "default/dev") {
					t.Fatalf("put %+v: %v", e, err)
				}
			}
			if _, err := s.Put(t.Context(), first, fill("another")); !errors.Is(err, ErrExists) {
				t.Errorf("the same name again: %v", err)
			}
			if diff := cmp.Diff([]string{third, second, first}, names(t, s)); diff != "" {
				t.Error(diff)
			}
			if got := read(t, s, first); got != "archive of "+first {
				t.Errorf("read %q", got)
			}
			if got := names(t, of(Cluster{"default", "other"})); got != nil {
				t.Errorf("another cluster has %v", got)
			}
			if _, err := s.Get(t.Context(), "20260101T000000Z"); !errors.Is(err, ErrNotFound) {
				t.Errorf("a missing archive: %v", err)
			}
		})
	}
}

func TestRegistriesTellArchivesApart(t *testing.T) {
	of := storages(t)["registry"]
	for want, c := range map[string]Cluster{
		"application/vnd.drover.etcd-snapshot.v1": dev, "application/vnd.drover.management-backup.v1": {Management, "mgmt"},
	} {
		r, ok := of(c).(*registry)
		if !ok {
			t.Fatalf("the storage is a %T", of(c))
		}
		if _, err := r.Put(t.Context(), first, fill("archive")); err != nil {
			t.Fatal(err)
		}
		got, err := remote.Get(r.repository.Tag(first), r.options(t.Context())...)
		if err != nil {
			t.Fatal(err)
		}
		var m struct {
			ArtifactType string
			Layers       []struct{ MediaType string }
		}
		if err := json.Unmarshal(got.Manifest, &m); err != nil || m.ArtifactType != want || len(m.Layers) != 1 || m.Layers[0].MediaType != want+".tar+zstd+age" {
			t.Errorf("%v: the artifact of cluster %s is %s", err, c.Name, got.Manifest)
		}
		if content := read(t, r, first); content != "archive" {
			t.Errorf("read %q", content)
		}
		other := *r
		other.artifact = "application/vnd.example"
		if _, err := other.Get(t.Context(), first); err == nil {
			t.Error("an archive of another type was read")
		}
	}
}

func TestFailedArchivesDontAppear(t *testing.T) {
	broken := errors.New("broken")
	for kind, of := range storages(t) {
		t.Run(kind, func(t *testing.T) {
			s := of(dev)
			_, err := s.Put(t.Context(), first, func(w io.Writer) error {
				return errors.Join(fill("half")(w), broken)
			})
			if !errors.Is(err, broken) {
				t.Errorf("got %v, want %v", err, broken)
			}
			if got := names(t, s); got != nil {
				t.Errorf("the storage lists %v", got)
			}
			if d, ok := s.(Directory); ok {
				if left, _ := os.ReadDir(d.Path); len(left) > 0 {
					t.Errorf("%v is left", left)
				}
			}
		})
	}
}

func TestPruneKeepsTheNewest(t *testing.T) {
	for kind, of := range storages(t) {
		t.Run(kind, func(t *testing.T) {
			s := of(dev)
			for _, name := range []string{first, second, third} {
				if _, err := s.Put(t.Context(), name, fill(name)); err != nil {
					t.Fatal(err)
				}
			}
			for _, tt := range []struct {
				keep          int
				deleted, left []string
			}{
				{0, nil, []string{third, second, first}},
				{3, nil, []string{third, second, first}},
				{2, []string{first}, []string{third, second}},
				{1, []string{second}, []string{third}},
			} {
				gone, err := Prune(t.Context(), s, tt.keep)
				var deleted []string
				for _, e := range gone {
					deleted = append(deleted, e.Name)
				}
				if left := names(t, s); err != nil || !slices.Equal(deleted, tt.deleted) || !slices.Equal(left, tt.left) {
					t.Errorf("keep %d: deleted %v, left %v (%v)", tt.keep, deleted, left, err)
				}
			}
			if err := s.Delete(t.Context(), first); err != nil {
				t.Errorf("deleting a missing archive: %v", err)
			}
		})
	}
}

func TestFindReturnsTheNewestOrTheNamed(t *testing.T) {
	s := Directory{Path: t.TempDir()}
	for _, name := range []string{first, third, second} {
		if _, err := s.Put(t.Context(), name, fill("x")); err != nil {
			t.Fatal(err)
		}
	}
	for want, name := range map[string]string{third: "", first: first} {
		if e, err := Find(t.Context(), s, name); err != nil || e.Name != want {
			t.Errorf("%q finds %+v, %v", name, e, err)
		}
	}
	if _, err := Find(t.Context(), s, "20200101T000000Z"); !errors.Is(err, ErrNotFound) {
		t.Errorf("a missing one: %v", err)
	}
}

func TestDirectoryIsPrivateAndIgnoresOtherFiles(t *testing.T) {
	s := Directory{Path: filepath.Join(t.TempDir(), "a", "b")}
	e, err := s.Put(t.Context(), first, fill("x"))
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(e.Location); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	for _, name := range []string{"notes.txt", "x.snapshot", "." + first + ".snapshot.123"} {
		if err := os.WriteFile(filepath.Join(s.Path, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got := names(t, s); !slices.Equal(got, []string{first}) {
		t.Errorf("listed %v", got)
	}
	if _, err := Prune(t.Context(), s, 1); err != nil {
		t.Error(err)
	}
	if left, _ := os.ReadDir(s.Path); len(left) != 4 {
		t.Errorf("%d files are left, want all", len(left))
	}
}

func TestRegistryReportsDeniedAccessAndOtherArtifacts(t *testing.T) {
	r := artifacttest.NewRegistry(t, artifacttest.RegistryOptions{ServerOptions: artifacttest.ServerOptions{Username: "u", Password: "p"}})
	r.Push(t, artifacttest.Package{Name: "default/dev", Version: "1.0.0", Archive: []byte("chart")})
	open := func(password string) Storage {
		s, err := Open("oci://"+r.Host+"/charts", dev, Access{Registry: RegistryAccess{Auth: &authn.Basic{Username: "u", Password: password}}})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	if _, err := open("wrong").Put(t.Context(), first, fill("x")); err == nil || !strings.Contains(err.Error(), "401") {
		t.Errorf("a wrong password: %v", err)
	}
	if _, err := open("p").Get(t.Context(), "1.0.0"); err == nil || !strings.Contains(err.Error(), "is not a snapshot of etcd") {
		t.Errorf("a chart: %v", err)
	}
	if got := names(t, open("p")); got != nil {
		t.Errorf("a chart is listed: %v", got)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	r.Hang()
	if _, err := open("p").List(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a registry that hangs: %v", err)
	}
}

func TestUnknownLocationsAreRejected(t *testing.T) {
	for location, want := range map[string]string{
		"":                 "empty",
		"ftp://example":    "unsupported location",
		"oci://Upper/Case": "invalid location",
		"oci://":           "invalid location",
		"s3://":            "invalid location",
		"s3://a b":         "invalid location",
		"s3://host:9000/b": "invalid location",
	} {
		if _, err := Open(location, dev, Access{S3: S3Access{AccessKey: "a", SecretKey: "b"}}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", location, err, want)
		}
	}
}

func TestNamesSortByTime(t *testing.T) {
	at := time.Date(2026, 1, 2, 4, 4, 5, 0, time.FixedZone("", 3600))
	if got := Name(at); got != first || !namePattern.MatchString(got) {
		t.Errorf("got %s, want %s", got, first)
	}
}
