package faultproxy

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

// target counts the requests that arrive and answers "real".
func target(t *testing.T) (*Proxy, *atomic.Int64) {
	t.Helper()
	var arrived atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		arrived.Add(1)
		if r.URL.Path == "/missing" {
			w.WriteHeader(http.StatusNotFound)
		}
		_, _ = io.WriteString(w, "real")
		if IsWatch(r) {
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}
	}))
	t.Cleanup(server.Close)
	return New(t, &rest.Config{Host: server.URL}), &arrived
}

func send(t *testing.T, p *Proxy, method, path string) (int, string, error) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, p.Config().Host+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return response.StatusCode, string(body), err
}

func TestFaultsStrikeEveryNthMatchingRequest(t *testing.T) {
	p, arrived := target(t)
	f := &Fault{Matches: IsWrite, Every: 2, Strike: Respond(http.StatusTooManyRequests, nil, "busy")}
	p.Inject(f)
	for i, want := range []int{200, 429, 200, 429} {
		if got, _, err := send(t, p, http.MethodPut, "/api/v1/pods/a"); got != want {
			t.Errorf("request %d: %d (%v), want %d", i, got, err, want)
		}
		if got, body, _ := send(t, p, http.MethodGet, "/api/v1/pods/a"); got != 200 || body != "real" {
			t.Errorf("a read: %d %s", got, body)
		}
	}
	if f.Struck() != 2 || arrived.Load() != 6 {
		t.Errorf("struck %d times, %d requests arrived", f.Struck(), arrived.Load())
	}
	p.Inject(nil)
	if got, _, _ := send(t, p, http.MethodPut, "/api/v1/pods/a"); got != 200 {
		t.Errorf("without a fault: %d", got)
	}
}

func TestStrikesAlternate(t *testing.T) {
	p, _ := target(t)
	p.Inject(&Fault{Matches: IsCall, Strike: Alternate(Respond(500, nil, ""), Respond(429, nil, ""))})
	for _, want := range []int{429, 500, 429} {
		if got, _, err := send(t, p, http.MethodGet, "/api"); got != want {
			t.Errorf("got %d (%v), want %d", got, err, want)
		}
	}
}

func TestLostResponsesArrive(t *testing.T) {
	p, arrived := target(t)
	p.Inject(&Fault{Matches: IsCreate, Strike: Lose()})
	if _, _, err := send(t, p, http.MethodPost, "/api/v1/pods"); err == nil {
		t.Error("got a response")
	}
	if arrived.Load() != 1 {
		t.Errorf("%d requests arrived", arrived.Load())
	}
	lost := make(chan string, 10)
	p.Inject(&Fault{Matches: IsWrite, Strike: LoseWritten(func(r *http.Request) { lost <- Kind(r) })})
	if _, _, err := send(t, p, http.MethodPatch, "/api/v1/namespaces/a/pods/b"); err == nil {
		t.Error("the response arrived")
	}
	if got := <-lost; got != "PATCH pods" {
		t.Errorf("lost %s", got)
	}
	if got, _, err := send(t, p, http.MethodPatch, "/missing"); got != http.StatusNotFound || len(lost) > 0 {
		t.Errorf("nothing was written: %d (%v), lost %d", got, err, len(lost))
	}
}

func TestWatchesAreCut(t *testing.T) {
	p, _ := target(t)
	p.Inject(&Fault{Matches: IsWatch, Strike: Cut(50 * time.Millisecond)})
	if _, body, err := send(t, p, http.MethodGet, "/api/v1/pods?watch=true"); err == nil && body != "real" {
		t.Errorf("got %q", body)
	}
}

func TestRunningWatchesEndWithTheirFault(t *testing.T) {
	p, arrived := target(t)
	ended := make(chan error, 1)
	go func() {
		_, _, err := send(t, p, http.MethodGet, "/api/v1/pods?watch=true")
		ended <- err
	}()
	for arrived.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	p.Inject(nil)
	<-ended
}

func TestDelayedRequestsAreAnswered(t *testing.T) {
	p, _ := target(t)
	p.Inject(&Fault{Matches: IsRead, Strike: Delay(50 * time.Millisecond)})
	began := time.Now()
	if _, body, err := send(t, p, http.MethodGet, "/api/v1/pods"); err != nil || body != "real" || time.Since(began) < 50*time.Millisecond {
		t.Errorf("got %q (%v) after %s", body, err, time.Since(began))
	}
}

func TestKindsOfRequests(t *testing.T) {
	for text, want := range map[string]string{
		"POST /api/v1/namespaces/a/secrets":                                   "POST secrets",
		"PATCH /apis/cluster.x-k8s.io/v1beta2/namespaces/a/machines/b/status": "PATCH machines/status",
		"DELETE /api/v1/nodes/a":                                              "DELETE nodes",
		"DELETE /api/v1/namespaces/a":                                         "DELETE namespaces",
		"GET /":                                                               "GET ",
		"GET /apis/apps/v1":                                                   "GET ",
	} {
		method, path, _ := strings.Cut(text, " ")
		if got := Kind(httptest.NewRequest(method, path, nil)); got != want {
			t.Errorf("%s is %q", text, got)
		}
	}
}

func TestWritesAreRecognized(t *testing.T) {
	for text, want := range map[string]bool{
		"POST /api/v1/namespaces/a/secrets": true, "PATCH /apis/x/v1/namespaces/a/machines/b/status": true, "DELETE /api/v1/pods/a": true,
		"GET /api/v1/pods": false, "POST /api/v1/namespaces/a/events": false, "PUT /apis/coordination.k8s.io/v1/namespaces/a/leases/b": false,
		"POST /apis/authentication.k8s.io/v1/tokenreviews": false,
	} {
		method, path, _ := strings.Cut(text, " ")
		if got := IsWrite(httptest.NewRequest(method, path, nil)); got != want {
			t.Errorf("%s is a write: %v", text, got)
		}
	}
}
