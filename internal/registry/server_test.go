package registry_test

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-dev/drover/internal/registry"
	"github.com/drover-dev/drover/internal/registry/artifact"
	"github.com/drover-dev/drover/internal/test/artifacttest"
)

func TestReadingNeedsNoPassword(t *testing.T) {
	w := newWorld(t, nil)
	pushed := w.push("hello", "1.2.3+build.4")
	if want := "oci://" + w.address + "/charts/hello:1.2.3_build.4"; pushed.Reference != want {
		t.Errorf("it is at %q, want %q", pushed.Reference, want)
	}
	got, err := w.pull("hello", "1.2.3+build.4")
	must(t, err)
	if !bytes.Equal(got, artifacttest.Chart(t, "hello", "1.2.3+build.4", nil)) {
		t.Error("something else came")
	}
	if _, err := w.pull("hello", pushed.Digest); err != nil {
		t.Errorf("by the digest that push returned: %v", err)
	}
}

func TestWritingRequiresThePassword(t *testing.T) {
	w := newWorld(t, nil)
	w.push("hello", "1.0.0")
	must(t, os.WriteFile(w.access.PasswordFile, []byte("wrong-word"), 0o600))
	_, err := w.client().Push(t.Context(), "charts", chart(t, "hello", "2.0.0"))
	if err == nil || !strings.Contains(err.Error(), "rejected the password of this home") || strings.Contains(err.Error(), "wrong-word") {
		t.Errorf("pushing with another password: %v", err)
	}
	if _, err := w.client().Collect(t.Context(), 0); err == nil {
		t.Error("content is removed for another password")
	}
	for method, path := range map[string]string{
		http.MethodPost:   "/v2/charts/hello/blobs/uploads/",
		http.MethodPut:    "/v2/charts/hello/manifests/1.0.0",
		http.MethodPatch:  "/v2/charts/hello/blobs/uploads/x",
		http.MethodDelete: "/v2/charts/hello/manifests/1.0.0",
	} {
		if status := w.ask(method, path, ""); status != http.StatusUnauthorized {
			t.Errorf("%s without a password: %d", method, status)
		}
	}
	for password, want := range map[string]int{"": http.StatusOK, "sesame": http.StatusOK, "other": http.StatusUnauthorized} {
		if status := w.ask(http.MethodGet, "/v2/", password); status != want {
			t.Errorf("a login with password %q: %d, want %d", password, status, want)
		}
	}
}

// ask sends a request, with a password if there is one.
func (w *world) ask(method, path, password string) int {
	w.t.Helper()
	request, err := http.NewRequestWithContext(w.t.Context(), method, "https://"+w.address+path, http.NoBody)
	must(w.t, err)
	if password != "" {
		request.SetBasicAuth(registry.User, password)
	}
	connections := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: w.authority.Pool()}}
	defer connections.CloseIdleConnections()
	response, err := (&http.Client{Transport: connections}).Do(request)
	must(w.t, err)
	must(w.t, response.Body.Close())
	return response.StatusCode
}

func TestRestartKeepsContent(t *testing.T) {
	w := newWorld(t, nil)
	w.push("hello", "1.0.0")
	w.stop()
	if _, err := w.pull("hello", "1.0.0"); err == nil {
		t.Fatal("a registry that was stopped answers")
	}
	w.start()
	if _, err := w.pull("hello", "1.0.0"); err != nil {
		t.Error(err)
	}
}

func TestConcurrentPushes(t *testing.T) {
	w := newWorld(t, nil)
	const each = 4
	var wg sync.WaitGroup
	for i := range each {
		for _, name := range []string{"hello", fmt.Sprintf("hello-%d", i)} { // the same and different ones
			c := chart(t, name, "1.0.0")
			wg.Go(func() {
				if _, err := w.client().Push(t.Context(), "charts", c); err != nil {
					t.Error(err)
				}
			})
		}
	}
	wg.Wait()
	for i := range each {
		if _, err := w.pull(fmt.Sprintf("hello-%d", i), "1.0.0"); err != nil {
			t.Error(err)
		}
	}
	if _, err := w.pull("hello", "1.0.0"); err != nil {
		t.Error(err)
	}
}

func TestListShowsRepositoriesAndTags(t *testing.T) {
	w := newWorld(t, nil)
	list, err := w.client().List(t.Context())
	if err != nil || len(list) != 0 {
		t.Errorf("an empty registry has %v (%v)", list, err)
	}
	w.push("hello", "1.0.0")
	w.push("hello", "1.1.0")
	gone := w.push("bye", "1.0.0")
	if status := w.ask(http.MethodDelete, "/v2/charts/bye/manifests/"+gone.Digest, "sesame"); status != http.StatusAccepted {
		t.Errorf("deleting: %d", status)
	}
	list, err = w.client().List(t.Context())
	must(t, err)
	want := []registry.Repository{{Name: "charts/bye", Tags: []string{}}, {Name: "charts/hello", Tags: []string{"1.0.0", "1.1.0"}}}
	if diff := cmp.Diff(want, list); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestRenewedCertificateIsServed(t *testing.T) {
	w := newWorld(t, nil)
	if name := w.shown(); name != "registry" {
		t.Fatalf("certificate %q", name)
	}
	must(t, os.Remove(w.options.CertFile))
	if name := w.shown(); name != "registry" {
		t.Errorf("certificate %q while the new one is written", name)
	}
	w.issue("renewed")
	if name := w.shown(); name != "renewed" {
		t.Errorf("certificate %q after the renewal", name)
	}
}

func (w *world) shown() string {
	w.t.Helper()
	connection, err := tls.Dial("tcp", w.address, &tls.Config{RootCAs: w.authority.Pool()})
	must(w.t, err)
	defer connection.Close()
	return connection.ConnectionState().PeerCertificates[0].Subject.CommonName
}

func TestPasswordIsRequired(t *testing.T) {
	w := newWorld(t, nil)
	must(t, os.WriteFile(w.options.PasswordFile, []byte("\n"), 0o600))
	if _, err := registry.Open(t.Context(), w.options); err == nil || !strings.Contains(err.Error(), "drover up") {
		t.Errorf("an empty password: %v", err)
	}
	must(t, os.Remove(w.options.PasswordFile))
	if _, err := registry.Open(t.Context(), w.options); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no password: %v", err)
	}
}

func TestUnreachableRegistry(t *testing.T) {
	w := newWorld(t, nil)
	w.stop()
	for name, run := range map[string]func() error{
		"push": func() error {
			_, err := w.client().Push(t.Context(), "charts", chart(t, "hello", "1.0.0"))
			return err
		},
		"list": func() error { _, err := w.client().List(t.Context()); return err },
		"gc":   func() error { _, err := w.client().Collect(t.Context(), time.Hour); return err },
	} {
		if err := run(); err == nil || !strings.Contains(err.Error(), "connecting to registry") || !strings.Contains(err.Error(), "drover status") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// damage changes a byte of content.
func (w *world) damage(digest string) {
	w.t.Helper()
	hex := strings.TrimPrefix(digest, "sha256:")
	file := filepath.Join(w.options.Dir, "docker/registry/v2/blobs/sha256", hex[:2], hex, "data")
	data, err := os.ReadFile(file)
	must(w.t, err)
	data[len(data)/2] ^= 1
	must(w.t, os.WriteFile(file, data, 0o600))
}

func TestDamagedContentIsReplaced(t *testing.T) {
	w := newWorld(t, nil)
	w.push("hello", "1.0.0")
	digest := digestOf(artifacttest.Chart(t, "hello", "1.0.0", nil))
	w.damage(digest)
	if _, err := w.pull("hello", "1.0.0"); err == nil {
		t.Fatal("damaged content is accepted")
	} else if errors.Is(err, artifact.ErrNotFound) {
		t.Errorf("damaged content is not found: %v", err)
	}
	if _, err := w.client().Push(t.Context(), "charts", chart(t, "hello", "1.0.0")); err == nil || !strings.Contains(err.Error(), "drover registry gc") {
		t.Errorf("pushing over damaged content: %v", err)
	}
	done, err := w.client().Collect(t.Context(), time.Hour)
	must(t, err)
	want := registry.Collected{Damaged: []registry.Damaged{{Digest: digest, Repositories: []string{"charts/hello"}}}}
	if diff := cmp.Diff(want, done); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	w.push("hello", "1.0.0")
	if _, err := w.pull("hello", "1.0.0"); err != nil {
		t.Errorf("after pushing again: %v", err)
	}
}
