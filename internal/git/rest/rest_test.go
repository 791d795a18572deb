package rest

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/drover-dev/drover/internal/base/bounded"
)

const token = "a-secret-token-of-tests"

// serve returns a client of a server that answers as the test says.
func serve(t *testing.T, handle http.HandlerFunc) *Client {
	t.Helper()
	server := httptest.NewServer(handle)
	t.Cleanup(server.Close)
	c, err := New(Options{BaseURL: server.URL + "/api", Header: http.Header{"Authorization": {token}}, Secret: token})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestSegmentsCannotLeadToOtherResources(t *testing.T) {
	var got string
	c := serve(t, func(_ http.ResponseWriter, r *http.Request) { got = r.URL.EscapedPath() + "?" + r.URL.RawQuery })
	for segment, want := range map[string]string{
		"plain": "/api/repos/plain/x?", "a/b": "/api/repos/a%2Fb/x?", "..": "/api/repos/%2E%2E/x?", "a?b#c": "/api/repos/a%3Fb%23c/x?", "ä b": "/api/repos/%C3%A4%20b/x?",
	} {
		_, err := c.Do(t.Context(), Request{Doing: "testing", Method: http.MethodGet, Path: []string{"repos", segment, "x"}}, nil)
		if err != nil || got != want {
			t.Errorf("%q became %q, want %q; error %v", segment, got, want, err)
		}
	}
}

func TestErrorsNameTheHostAndKeepTheToken(t *testing.T) {
	for name, test := range map[string]struct {
		status     int
		body, says string
	}{
		"a message":      {404, `{"message": "Not Found"}`, "404 Not Found: Not Found"},
		"another field":  {400, `{"error": "state is missing"}`, "state is missing"},
		"an object":      {400, `{"message": {"name": ["is too long"]}}`, `{"name": ["is too long"]}`},
		"an echo":        {401, `{"message": "bad token ` + token + `"}`, "bad token [redacted]; check the token"},
		"a web page":     {502, `<html>` + token + `</html>`, "502 Bad Gateway"},
		"control bytes":  {500, `{"message": "a\u001b[31m\nb"}`, "a [31m b"},
		"a long message": {500, `{"message": "` + strings.Repeat("x", 10_000) + `"}`, "xxx…"},
	} {
		t.Run(name, func(t *testing.T) {
			c := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(test.status); fmt.Fprint(w, test.body) })
			_, err := c.Do(t.Context(), Request{Doing: "testing", Method: http.MethodGet}, nil)
			if !HasStatus(err, test.status) || HasStatus(err, 200) {
				t.Fatalf("error %v", err)
			}
			if !strings.Contains(err.Error(), test.says) || !strings.HasPrefix(err.Error(), "testing: 127.0.0.1") || len(err.Error()) > 500 || strings.Contains(err.Error(), token) {
				t.Errorf("error %q, want %q", err, test.says)
			}
		})
	}
}

func TestAnswersAreBounded(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"a": %q}`, strings.Repeat("x", maxBody))
	})
	var into map[string]string
	var large *bounded.TooLargeError
	if _, err := c.Do(t.Context(), Request{Doing: "testing", Method: http.MethodGet}, &into); !errors.As(err, &large) {
		t.Errorf("error %v", err)
	}
}

func TestTokensStayWithTheirHost(t *testing.T) {
	seen := "nothing"
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { seen = r.Header.Get("Authorization") }))
	defer other.Close()
	elsewhere := strings.Replace(other.URL, "127.0.0.1", "localhost", 1)
	c := serve(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, elsewhere, http.StatusFound) })
	_, err := c.Do(t.Context(), Request{Doing: "testing", Method: http.MethodGet}, nil)
	if err != nil || seen != "" {
		t.Errorf("the other host saw %q, error %v", seen, err)
	}
}

func TestUnsafeURLsAreRejectedWithoutQuotingThem(t *testing.T) {
	for _, raw := range []string{"", "hunter2", "http://example.com/hunter2", "https://jane:hunter2@example.com", "ftp://127.0.0.1/hunter2", "https://%zz/hunter2"} {
		if _, err := New(Options{BaseURL: raw}); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: error %v", raw, err)
		}
	}
	if _, err := New(Options{BaseURL: "https://example.com", CA: []byte("nonsense")}); err == nil {
		t.Error("no error for a CA without certificates")
	}
}
