package bounded

import (
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
		from := peer(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, to, http.StatusFound) })
		host := strings.TrimPrefix(from, "http://")
		pool := NewPool(nil, 0)
		for _, z := range []zone{public, private} {
			pool.zones.Add(host, z)
			if _, err := get(t, &http.Client{Transport: pool.For(host, Limits{Body: 100})}, from); err == nil || reached > 0 {
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

func TestZoneOfAPeerNeverComesCloser(t *testing.T) {
	at := strings.TrimPrefix(peer(t, func(http.ResponseWriter, *http.Request) {}), "http://")
	pool := NewPool(nil, 0)
	pool.zones.Add(at, public) // as if the name had another address before
	if _, err := get(t, &http.Client{Transport: pool.For(at, Limits{Body: 100})}, "http://"+at); err != nil {
		t.Fatal(err)
	}
	if z := pool.zoneOf(at); z != public {
		t.Errorf("zone %d", z)
	}
}

func TestRegistryDocumentsAreSmallerThanBlobs(t *testing.T) {
	large := peer(t, zeros(MaxDocument+1<<20))
	at := strings.TrimPrefix(large, "http://")
	c := &http.Client{Transport: NewPool(nil, 0).ForRegistry(at, Limits{Body: 64 << 20})}
	if _, err := get(t, c, large+"/v2/a/manifests/1"); err == nil {
		t.Error("a manifest is as large as it wants")
	}
	if _, err := get(t, c, large+"/v2/a/blobs/1"); err != nil {
		t.Error(err)
	}
}
