package atrest

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

func TestKeysDiffer(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 6e6, time.FixedZone("", 3600))
	one, err := NewKey(now)
	if err != nil {
		t.Fatal(err)
	}
	two, err := NewKey(now)
	if err != nil {
		t.Fatal(err)
	}
	data, err := base64.StdEncoding.DecodeString(one.Secret)
	if err != nil || len(data) != 32 || one.Secret == two.Secret || one.Name != "key-20260102-020405.006" {
		t.Errorf("key %q of %d bytes, error %v", one.Name, len(data), err)
	}
}

// secrets serves two pages of Secrets.
type secrets struct {
	// answers are the status codes with which writing a Secret fails.
	answers map[string]int
	written []string
}

func (s *secrets) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	switch {
	case r.Method == http.MethodPatch:
		name := path.Base(r.URL.Path)
		s.written = append(s.written, name)
		w.WriteHeader(cmp.Or(s.answers[name], http.StatusOK))
		fmt.Fprintf(w, `{"apiVersion":"meta.k8s.io/v1","kind":"PartialObjectMetadata","metadata":{"name":%q}}`, name)
	case r.URL.Query().Get("continue") == "":
		fmt.Fprint(w, page("next", "a1", "a2"))
	default:
		fmt.Fprint(w, page("", "b1", "b2"))
	}
}

// page returns a list of Secrets that is continued elsewhere.
func page(next string, names ...string) string {
	var items []string
	for _, name := range names {
		items = append(items, fmt.Sprintf(`{"metadata":{"namespace":"default","name":%q}}`, name))
	}
	return fmt.Sprintf(`{"apiVersion":"meta.k8s.io/v1","kind":"PartialObjectMetadataList","metadata":{"continue":%q},"items":[%s]}`, next, strings.Join(items, ","))
}

func (s *secrets) client(t *testing.T) metadata.Interface {
	t.Helper()
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	client, err := metadata.NewForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func TestRewriteReachesEverySecret(t *testing.T) {
	s := &secrets{answers: map[string]int{"a2": http.StatusNotFound}} // Deleted in the meantime.
	count, err := Rewrite(t.Context(), s.client(t))
	if !slices.Equal(s.written, []string{"a1", "a2", "b1", "b2"}) || count != 4 || err != nil {
		t.Errorf("%d Secrets, error %v, written %v", count, err, s.written)
	}
}

func TestRewriteStopsAtAnError(t *testing.T) {
	s := &secrets{answers: map[string]int{"a2": http.StatusForbidden}}
	count, err := Rewrite(t.Context(), s.client(t))
	if err == nil || !strings.Contains(err.Error(), "encrypting Secret default/a2") || count != 1 {
		t.Errorf("%d Secrets, error %v", count, err)
	}
}
