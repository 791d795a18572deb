package client

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestTokenIsNotForwardedOnRedirects: the token is for the API, not for hosts that it, or whoever
// answers for it, names.
func TestTokenIsNotForwardedOnRedirects(t *testing.T) {
	var leaked []string
	thief := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		leaked = append(leaked, r.Header.Get("X-Auth-Token"))
		w.Write([]byte(`{"id":"d"}`))
	}))
	defer thief.Close()
	for _, status := range []int{http.StatusMovedPermanently, http.StatusFound, http.StatusTemporaryRedirect, http.StatusPermanentRedirect} {
		api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, thief.URL+r.URL.Path, status)
		}))
		for name, sender := range map[string]*http.Client{"its own sender": nil, "a given sender": {}} {
			c, err := New(Options{URL: api.URL, Token: "secret", HTTP: sender})
			if err != nil {
				t.Fatal(err)
			}
			_, err = c.Device(t.Context(), "d")
			if err == nil || !strings.Contains(err.Error(), "use its final URL") || KindOf(err) != Unavailable {
				t.Errorf("%d, %s: error %v", status, name, err)
			}
		}
		api.Close()
	}
	if len(leaked) > 0 {
		t.Errorf("another host received %q", leaked)
	}
}

func TestClientRejectsAPIsWithoutTLS(t *testing.T) {
	for url, fine := range map[string]bool{
		"https://api.example/metal/v1": true, "http://127.0.0.1:1": true, "http://[::1]:1": true, "http://localhost:1": true,
		"http://api.example": false, "http://198.18.0.1:8800/metal/v1": false, "http://127.0.0.1.example": false, "http://0.0.0.0:1": false,
	} {
		if _, err := New(Options{URL: url, Token: "t"}); (err == nil) != fine {
			t.Errorf("%s: error %v", url, err)
		}
	}
}
