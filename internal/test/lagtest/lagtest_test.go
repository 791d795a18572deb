package lagtest

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

func TestOnlyWatchesOfTheResourcesAreDelayed(t *testing.T) {
	const lag = 300 * time.Millisecond
	server := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(out, "event") }))
	t.Cleanup(server.Close)
	watches := &Watches{Resources: []string{"machines"}}
	client := &http.Client{Transport: watches.Wrap(http.DefaultTransport)}
	for _, tc := range []struct {
		name, path string
		lag        time.Duration
		delayed    bool
	}{
		{"a watch", "/apis/group/v1/namespaces/ns/machines?watch=true", lag, true},
		{"a watch without a lag", "/apis/group/v1/namespaces/ns/machines?watch=true", 0, false},
		{"a list", "/apis/group/v1/namespaces/ns/machines", lag, false},
		{"a watch of another resource", "/apis/group/v1/clusters?watch=true", lag, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			watches.Set(tc.lag)
			resp, err := client.Get(server.URL + tc.path)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			began := time.Now()
			text, err := io.ReadAll(resp.Body)
			if err != nil || string(text) != "event" {
				t.Fatalf("got %q, %v", text, err)
			}
			if took := time.Since(began); took >= lag/2 != tc.delayed {
				t.Errorf("took %s, delayed should be %t", took, tc.delayed)
			}
		})
	}
}
