package bounded

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"
)

// peer is a server that answers as the test says.
func peer(t *testing.T, handle http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(handle)
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	return s.URL
}

func clientWith(l Limits) *http.Client {
	return &http.Client{Transport: Transport(&http.Transport{}, l)}
}

func get(t *testing.T, c *http.Client, url string) ([]byte, error) {
	t.Helper()
	return getWith(t.Context(), t, c, url)
}

func getWith(ctx context.Context, t *testing.T, c *http.Client, url string) ([]byte, error) {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := c.Do(r)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	return io.ReadAll(response.Body)
}

// zeros answers with compressed zeros.
func zeros(size int64) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		z, _ := gzip.NewWriterLevel(w, gzip.BestSpeed)
		block := make([]byte, 1<<20)
		for sent := int64(0); sent < size; sent += int64(len(block)) {
			if _, err := z.Write(block); err != nil {
				return
			}
		}
		_ = z.Close()
	}
}

func TestDecompressedSizeIsBounded(t *testing.T) {
	c := clientWith(Limits{Peer: "test", Body: 3 << 20})
	data, err := get(t, c, peer(t, zeros(1<<30)))
	var large *TooLargeError
	if !errors.As(err, &large) || len(data) > 3<<20 {
		t.Errorf("read %d bytes, error %v", len(data), err)
	}
	if data, err := get(t, c, peer(t, zeros(3<<20))); err != nil || len(data) != 3<<20 {
		t.Errorf("read %d bytes of a response that is just small enough, error %v", len(data), err)
	}
}

func TestErrorBodiesAreTruncated(t *testing.T) {
	url := peer(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusInternalServerError)
		_, _ = io.WriteString(w, strings.Repeat("x", 1<<20))
	})
	if data, err := get(t, clientWith(Limits{Body: 1 << 30}), url); err != nil || len(data) != MaxError {
		t.Errorf("read %d bytes, error %v", len(data), err)
	}
}

func TestSlowResponsesTimeOut(t *testing.T) {
	drip := peer(t, func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			_, _ = io.WriteString(w, "x")
			_ = http.NewResponseController(w).Flush()
			time.Sleep(5 * time.Millisecond)
		}
	})
	silent := peer(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	c := clientWith(Limits{Body: 1 << 20, Timeout: 50 * time.Millisecond})
	for _, url := range []string{drip, silent, silent + "?watch=true"} {
		if _, err := get(t, c, url); !errors.Is(err, ErrTimeout) {
			t.Errorf("%s: got error %v, want %v", url, err, ErrTimeout)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	if data, err := getWith(ctx, t, c, drip+"?watch=true"); !errors.Is(err, context.DeadlineExceeded) || len(data) < 10 {
		t.Errorf("a watch ended after %d bytes: %v", len(data), err)
	}
}

func TestEventsAreBoundedAndStreamsAreNot(t *testing.T) {
	event := `{"type": "ADDED", "object": {"text": "}}]]\"\\", "list": [[1], {}]}}`
	stream := func(send func(io.Writer)) string {
		return peer(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			send(w)
		}) + "?watch=true"
	}
	c := clientWith(Limits{Body: 100, Event: 1 << 10})
	many := stream(func(w io.Writer) {
		for range 1000 {
			_, _ = io.WriteString(w, event+"\n")
		}
	})
	if data, err := get(t, c, many); err != nil || len(data) != 1000*(len(event)+1) {
		t.Errorf("read %d bytes of a stream: %v", len(data), err)
	}
	var large *TooLargeError
	for name, text := range map[string]string{
		"a long text":   `{"a": "` + strings.Repeat("x", 2<<10),
		"line breaks":   `{"a": [` + strings.Repeat("1,\n", 1<<10),
		"a string":      `"` + strings.Repeat("}", 2<<10),
		"quoted quotes": `{"a": "` + strings.Repeat(`\"}`, 1<<10),
		"a number":      strings.Repeat("1", 2<<10),
	} {
		if _, err := get(t, c, stream(func(w io.Writer) { _, _ = io.WriteString(w, event+text) })); !errors.As(err, &large) {
			t.Errorf("%s: got error %v, want a %T", name, err, large)
		}
	}
}

func TestRedirectsFail(t *testing.T) {
	reached := 0
	count := func(http.ResponseWriter, *http.Request) { reached++ }
	other := peer(t, count)
	for name, to := range map[string]string{
		"another host": other, "the same host": "/end", "no URL": "http://[", "a long name": "http://" + strings.Repeat("x", 1<<10),
	} {
		url := peer(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/" {
				reached++
			}
			w.Header().Set("Location", to)
			w.WriteHeader(http.StatusPermanentRedirect)
		})
		_, err := get(t, clientWith(Limits{Peer: "test", Body: 100}), url+"/")
		var redirect *RedirectError
		if !errors.As(err, &redirect) || reached > 0 || len(redirect.Error()) > 400 {
			t.Errorf("%s: error %v, reached: %d", name, err, reached)
		}
	}
}

func TestPausesThatAPeerRequestsAreBounded(t *testing.T) {
	for given, want := range map[string]string{"": "", "5": "5", "999999999": "30", "-1": "30", "Fri, 31 Dec 2099 23:59:59 GMT": "30"} {
		url := peer(t, func(w http.ResponseWriter, _ *http.Request) {
			if given != "" {
				w.Header().Set("Retry-After", given)
			}
			w.WriteHeader(http.StatusTooManyRequests)
		})
		response, err := clientWith(Limits{Body: 100, Pause: 30 * time.Second}).Get(url)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if got := response.Header.Get("Retry-After"); got != want {
			t.Errorf("Retry-After %q became %q", given, got)
		}
	}
}

func TestBudgetLimitsTheSumOfResponses(t *testing.T) {
	url := peer(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, strings.Repeat("x", 60)) })
	c, ctx := clientWith(Limits{Body: 100}), WithBudget(t.Context(), 100)
	if _, err := getWith(ctx, t, c, url); err != nil {
		t.Fatal(err)
	}
	var large *TooLargeError
	if _, err := getWith(ctx, t, c, url); !errors.As(err, &large) {
		t.Errorf("got error %v, want a %T", err, large)
	}
}

func TestZones(t *testing.T) {
	for text, want := range map[string]zone{
		"127.0.0.1": onHost, "::1": onHost, "::ffff:127.0.0.1": onHost, "0.0.0.0": onHost, "169.254.169.254": onHost, "fe80::1": onHost,
		"10.0.0.1": private, "192.168.1.1": private, "fd00::1": private, "100.64.0.1": private,
		"192.0.2.1": public, "2001:db8::1": public,
		"fec0::1": private, "198.18.0.1": private, "64:ff9b:1::1": private,
		"168.63.129.16": onHost, "100.100.100.200": onHost, "fd00:ec2::254": onHost, "fe80::1%eth0": onHost, "::ffff:168.63.129.16": onHost,
		"64:ff9b::7f00:1": onHost, "64:ff9b::a9fe:a9fe": onHost, "64:ff9b::a00:1": private, "64:ff9b::c000:201": public,
		"::127.0.0.1": onHost, "2002:7f00:1::1": onHost, "2002:a00:1::": private, "2002:c000:201::": public,
	} {
		if got := zoneOf(netip.MustParseAddr(text)); got != want {
			t.Errorf("%s is in zone %d, want %d", text, got, want)
		}
	}
}
