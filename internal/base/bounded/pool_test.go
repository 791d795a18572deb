package bounded

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// TestPublicPeersDoNotLeadToThisHost pretends that a server on this host is public, and has it
// redirect to another one.
func TestPublicPeersDoNotLeadToThisHost(t *testing.T) {
	reached := 0
	inside := peer(t, func(http.ResponseWriter, *http.Request) { reached++ })
	named := strings.Replace(inside, "127.0.0.1", "localhost", 1)
	for _, to := range []string{inside, named, "http://169.254.169.254/latest", "http://[::ffff:127.0.0.1]:1/"} {
		for _, z := range []zone{public, private} {
			pool, redirected := NewPool(nil, 0), false
			from := peer(t, func(w http.ResponseWriter, r *http.Request) {
				pool.zones.Add(r.Host, z) // A new connection would not lead here any more.
				redirected = true
				http.Redirect(w, r, to, http.StatusFound)
			})
			c := &http.Client{Transport: pool.For(strings.TrimPrefix(from, "http://"), Limits{Body: 100})}
			if _, err := get(t, c, from); err == nil || reached > 0 || !redirected {
				t.Errorf("a peer in zone %d leads to %s: %v", z, to, err)
			}
		}
	}
	from := peer(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, inside, http.StatusFound) })
	host := strings.TrimPrefix(from, "http://")
	if _, err := get(t, &http.Client{Transport: NewPool(nil, 0).For(host, Limits{Body: 100})}, from); err != nil || reached != 1 {
		t.Errorf("a peer on this host doesn't lead to another one here: %v", err)
	}
}

// TestPeersNeverComeCloser pretends that the name of a server had another address before.
func TestPeersNeverComeCloser(t *testing.T) {
	reached := false
	at := strings.TrimPrefix(peer(t, func(http.ResponseWriter, *http.Request) { reached = true }), "http://")
	for _, z := range []zone{public, private} {
		pool := NewPool(nil, 0)
		pool.zones.Add(at, z)
		if _, err := get(t, &http.Client{Transport: pool.For(at, Limits{Body: 100})}, "http://"+at); err == nil || reached {
			t.Errorf("a peer in zone %d came to this host: %v", z, err)
		}
		if got := pool.zoneOf(at); got != z {
			t.Errorf("zone %d became %d", z, got)
		}
	}
}

// TestRegistryDocumentsAreSmallerThanBlobs has a registry choose URLs that look like those of
// blobs.
func TestRegistryDocumentsAreSmallerThanBlobs(t *testing.T) {
	large := zeros(MaxDocument + 1<<20)
	url := peer(t, func(w http.ResponseWriter, r *http.Request) {
		if to := r.Header.Get("To"); to != "" && r.URL.Path != to {
			http.Redirect(w, r, to, http.StatusTemporaryRedirect)
			return
		}
		large(w, r)
	})
	at := strings.TrimPrefix(url, "http://")
	c := &http.Client{Transport: NewPool(nil, 0).ForRegistry(at, Limits{Body: 64 << 20})}
	for name, tt := range map[string]struct {
		path, redirect string
		blob, fits     bool
	}{
		"a blob":                             {path: "/v2/a/blobs/sha256:1", blob: true, fits: true},
		"a blob elsewhere":                   {path: "/v2/a/blobs/sha256:1", redirect: "/storage", blob: true, fits: true},
		"a manifest":                         {path: "/v2/a/manifests/1"},
		"a manifest that redirects to blobs": {path: "/v2/a/manifests/1", redirect: "/v2/a/blobs/sha256:1"},
		"tags that continue at blobs":        {path: "/v2/a/blobs/sha256:1"},
		"a token for a blob":                 {path: "/token", blob: true},
		"a token from blobs":                 {path: "/v2/a/blobs/sha256:1?scope=x", blob: true},
		"a manifest for a blob":              {path: "/v2/a/manifests/1", redirect: "/v2/a/blobs/sha256:1", blob: true},
		"another blob":                       {path: "/v2/a/blobs/sha256:2", blob: true},
	} {
		ctx := t.Context()
		if tt.blob {
			ctx = WithBlob(ctx, "sha256:1")
		}
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, url+tt.path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("To", tt.redirect)
		response, err := c.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_, err = io.Copy(io.Discard, response.Body)
		response.Body.Close()
		if tt.fits != (err == nil) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}
