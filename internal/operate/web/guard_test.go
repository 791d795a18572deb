package web

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestGuardRejectsForeignRequests(t *testing.T) {
	handler := guard([]string{"127.0.0.1:8443"}, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }))
	for _, tt := range []struct {
		name, method, host string
		header             map[string]string
		want               int
	}{
		{"its own page", "POST", "127.0.0.1:8443", map[string]string{"Sec-Fetch-Site": "same-origin", "Origin": "http://127.0.0.1:8443"}, 204},
		{"a name that DNS points here", "GET", "evil.example.com:8443", nil, 421},
		{"another port", "GET", "127.0.0.1:80", nil, 421},
		{"a form of another site", "POST", "127.0.0.1:8443", map[string]string{"Sec-Fetch-Site": "cross-site"}, 403},
		{"another port of this host", "POST", "127.0.0.1:8443", map[string]string{"Sec-Fetch-Site": "same-site", "Origin": "http://127.0.0.1:9000"}, 403},
		{"an old browser on another site", "POST", "127.0.0.1:8443", map[string]string{"Origin": "http://evil.example.com"}, 403},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := httptest.NewRequestWithContext(t.Context(), tt.method, "/api/session", nil)
			r.Host = tt.host
			for key, value := range tt.header {
				r.Header.Set(key, value)
			}
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, r)
			if w.Code != tt.want {
				t.Errorf("status %d, want %d: %s", w.Code, tt.want, w.Body)
			}
			policy := w.Header().Get("Content-Security-Policy")
			if !strings.Contains(policy, "default-src 'none'") || !strings.Contains(policy, "frame-ancestors 'none'") || strings.Contains(policy, "unsafe") {
				t.Errorf("content security policy %q", policy)
			}
			if w.Header().Get("X-Frame-Options") != "DENY" || w.Header().Get("X-Content-Type-Options") != "nosniff" {
				t.Errorf("headers %v", w.Header())
			}
		})
	}
}

func TestGuardBoundsRequests(t *testing.T) {
	s, _ := newSessions("1")
	handler := guard([]string{"h"}, http.HandlerFunc(s.signIn))
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader(`{"token":"`+strings.Repeat("x", maxBody)+`"}`))
	r.Host = "h"
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	if w.Code != http.StatusBadRequest {
		t.Errorf("status %d, want %d", w.Code, http.StatusBadRequest)
	}
}

func TestLoopbackHostsNameThePort(t *testing.T) {
	got := strings.Join(loopbackHosts(&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8443}), " ")
	if got != "localhost:8443 127.0.0.1:8443 [::1]:8443" {
		t.Errorf("got %s", got)
	}
}

// signIn returns the status and the cookies of the response to a token.
func signIn(t *testing.T, s *sessions, token string) (int, []*http.Cookie) {
	t.Helper()
	w := httptest.NewRecorder()
	s.signIn(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/api/session", strings.NewReader(`{"token":"`+token+`"}`)))
	response := w.Result()
	defer response.Body.Close()
	return response.StatusCode, response.Cookies()
}

// valid reports whether a cookie opens the server.
func valid(t *testing.T, s *sessions, cookie *http.Cookie) bool {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/api/plane", nil)
	r.AddCookie(cookie)
	_, found := s.end(r)
	return found
}

func TestTokenOpensOneSession(t *testing.T) {
	s, token := newSessions("8443")
	if status, _ := signIn(t, s, "wrong"); status != http.StatusUnauthorized {
		t.Errorf("a wrong token: status %d", status)
	}
	status, cookies := signIn(t, s, token)
	if status != http.StatusNoContent || len(cookies) != 1 {
		t.Fatalf("status %d with cookies %v", status, cookies)
	}
	c := cookies[0]
	if !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Domain != "" || !strings.HasSuffix(c.Name, "8443") || strings.Contains(c.Value, token) {
		t.Errorf("cookie %v", c)
	}
	if !valid(t, s, c) || valid(t, s, &http.Cookie{Name: c.Name, Value: "x"}) {
		t.Error("the cookie is not what opens the server")
	}
	if status, _ := signIn(t, s, token); status != http.StatusUnauthorized {
		t.Errorf("the second use of the token: status %d", status)
	}
}

func TestSessionsEnd(t *testing.T) {
	s, _ := newSessions("8443")
	now := time.Now()
	s.now = func() time.Time { return now }
	cookie := &http.Cookie{Name: s.cookie, Value: s.add()}
	handler := s.required(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if deadline, bounded := r.Context().Deadline(); !bounded || !deadline.Equal(now.Add(sessionLife)) {
			t.Errorf("a request may last until %s, want the end of its session", deadline)
		}
	}))
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/api/stream", nil)
	r.AddCookie(cookie)
	handler.ServeHTTP(httptest.NewRecorder(), r)
	now = now.Add(sessionLife)
	if valid(t, s, cookie) {
		t.Error("the session is valid after its end")
	}
	first := &http.Cookie{Name: s.cookie, Value: s.add()}
	for range maxSessions {
		s.add()
	}
	if valid(t, s, first) || len(s.open) != maxSessions {
		t.Errorf("%d sessions are open, want %d without the oldest", len(s.open), maxSessions)
	}
}
