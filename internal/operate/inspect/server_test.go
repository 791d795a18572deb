package inspect

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"
)

// serve answers as an API server does.
func serve(t *testing.T, answers map[string]string) *Plane {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, found := answers[r.URL.RequestURI()]
		switch {
		case !found:
			w.WriteHeader(http.StatusForbidden)
		case r.URL.Path == "/readyz":
			w.WriteHeader(http.StatusInternalServerError)
		}
		_, _ = w.Write([]byte(answer)) // the client may be gone
	}))
	t.Cleanup(server.Close)
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	p, err := Connect(&rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{CAData: certificate}})
	if err != nil {
		t.Fatal(err)
	}
	if expires := clientExpiry(&rest.Config{TLSClientConfig: rest.TLSClientConfig{CertData: certificate}}); !expires.Time.Equal(server.Certificate().NotAfter) {
		t.Errorf("the certificate of the client expires at %s, want %s", expires, server.Certificate().NotAfter)
	}
	return p
}

func TestServerDescribesItself(t *testing.T) {
	p := serve(t, map[string]string{
		"/version":        `{"gitVersion":"v1.36.3"}`,
		"/readyz?verbose": "[+]ping ok\n[-]etcd failed: reason withheld\nreadyz check failed\n",
		"/metrics":        "# HELP x\nprocess_resident_memory_bytes 4.2e+08\nprocess_start_time_seconds 1.775e+09\nother{a=\"b c\"} 1\n",
	})
	got, err := p.Server(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got.Certificate.Before(&got.Started) || got.Memory != 420_000_000 || !got.Started.Time.Equal(time.Unix(1_775_000_000, 0)) || got.Version != "v1.36.3" || len(got.Unknown) > 0 {
		t.Errorf("got %+v", got)
	}
	if diff := cmp.Diff([]Check{{"ping", true}, {"etcd", false}}, got.Checks); diff != "" {
		t.Errorf("checks (-want +got):\n%s", diff)
	}
}

func TestServerSaysWhatTheCallerMayNotKnow(t *testing.T) {
	got, err := serve(t, map[string]string{"/version": `{"gitVersion":"v1.36.3"}`}).Server(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"the state of its parts: you may not read /readyz", "its memory: you may not read /metrics"}
	if diff := cmp.Diff(want, got.Unknown); diff != "" || got.Memory != 0 {
		t.Errorf("%+v (-want +got):\n%s", got, diff)
	}
	if _, err := serve(t, nil).Server(t.Context()); err == nil {
		t.Error("a server that denies everything is described")
	}
	if _, err := (&Plane{}).Server(t.Context()); err == nil {
		t.Error("an unknown server is described")
	}
}
