package client

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"github.com/drover-dev/drover/internal/base/bounded"
)

func hostile(t *testing.T, handle http.HandlerFunc) *Client {
	t.Helper()
	s := httptest.NewServer(handle)
	t.Cleanup(s.Close)
	c, err := New(Options{URL: s.URL, Token: "secret"})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestResponsesOfTheAPIAreBounded(t *testing.T) {
	var large *bounded.TooLargeError
	c := hostile(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		block := make([]byte, 1<<20)
		for range 48 {
			if _, err := z.Write(block); err != nil {
				return
			}
		}
		_ = z.Close()
	})
	if err := c.do(t.Context(), call{method: http.MethodGet, path: "/x"}, &struct{}{}); !errors.As(err, &large) {
		t.Errorf("a response of 48 MiB: error %v", err)
	}
	// A list that never ends, with a little in each page.
	c = hostile(t, func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, `{"meta": {"total": 1, "last_page": 100000}, "text": %q}`, strings.Repeat("x", 8<<20))
	})
	pages := 0
	_, err := list(t.Context(), call{path: "/y"}, func(ctx context.Context, r call) (page[string], error) {
		pages++
		var out struct{ Meta *meta }
		err := c.do(ctx, r, &out)
		return page[string]{meta: out.Meta}, err
	})
	if !errors.As(err, &large) || pages > 40 {
		t.Errorf("an endless list: %d pages, error %v", pages, err)
	}
}

// TestSmallPagesTakeLittleMemory answers with pages of empty devices, each of which becomes a
// kilobyte.
func TestSmallPagesTakeLittleMemory(t *testing.T) {
	var large *bounded.TooLargeError
	c := hostile(t, func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"devices": [%s{}]}`, strings.Repeat(`{},`, 1<<20))
	})
	var out struct{ Devices []Device }
	if err := c.do(t.Context(), call{method: http.MethodGet, path: "/x"}, &out); !errors.As(err, &large) || !large.Decoded {
		t.Errorf("a page of empty devices: error %v", err)
	}
	c = hostile(t, func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"meta": {"total": 1, "last_page": 20}, "devices": [%s{}]}`, strings.Repeat(`{},`, 1<<14))
	})
	devices, err := list(t.Context(), call{path: "/y"}, func(ctx context.Context, r call) (page[Device], error) {
		var out struct {
			Meta    *meta
			Devices []Device
		}
		err := c.do(ctx, r, &out)
		return page[Device]{items: out.Devices, meta: out.Meta}, err
	})
	if !errors.As(err, &large) {
		t.Errorf("a long list of empty devices: read %d, error %v", len(devices), err)
	}
	if size := reflect.TypeFor[Device]().Size(); size > maxItem {
		t.Errorf("a device takes %d bytes, more than %d", size, maxItem)
	}
}

func TestErrorsOfTheAPIAreShort(t *testing.T) {
	c := hostile(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusUnprocessableEntity)
		fmt.Fprintf(w, `{"errors": [%q]}`, strings.Repeat("x", 1<<20))
	})
	if err := c.do(t.Context(), call{method: http.MethodGet, path: "/x"}, nil); err == nil || len(err.Error()) > bounded.MaxError+100 {
		t.Errorf("an error of %d bytes", len(fmt.Sprint(err)))
	}
}

func TestTokenIsNotSentToAnotherHost(t *testing.T) {
	received := ""
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { received = r.Header.Get("X-Auth-Token") }))
	t.Cleanup(other.Close)
	c := hostile(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
	})
	if err := c.do(t.Context(), call{method: http.MethodGet, path: "/x"}, nil); err == nil || received != "" {
		t.Errorf("error %v; another host received %q", err, received)
	}
}
