package web

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"net/http"
	"slices"
	"sync"
	"time"
)

// Sessions end after sessionLife. The oldest of more than maxSessions ends first.
const (
	sessionLife = 12 * time.Hour
	maxSessions = 16
)

// sessions exchange a one-time token for a cookie. They store hashes only.
type sessions struct {
	// cookie has the port in its name: browsers send cookies to all ports of a host.
	cookie string
	now    func() time.Time

	mu    sync.Mutex
	token [sha256.Size]byte
	spent bool
	open  []session
}

type session struct {
	hash [sha256.Size]byte
	ends time.Time
}

// newSessions returns sessions with the token that opens the first one.
func newSessions(port string) (s *sessions, token string) {
	token = rand.Text()
	return &sessions{cookie: "drover-ui-" + port, now: time.Now, token: sha256.Sum256([]byte(token))}, token
}

// signIn exchanges the token for a cookie that scripts can't read.
func (s *sessions) signIn(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Token string `json:"token"`
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		fail(w, http.StatusBadRequest, "the request is not JSON", trySignIn)
		return
	}
	if !s.spend(body.Token) {
		fail(w, http.StatusUnauthorized, "the token in the address is wrong or was used before", trySignIn)
		return
	}
	http.SetCookie(w, &http.Cookie{ //nolint:gosec // the page is served without TLS, on loopback
		Name: s.cookie, Value: s.add(), Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode, MaxAge: int(sessionLife.Seconds()),
	})
	w.WriteHeader(http.StatusNoContent)
}

// spend reports whether a token is the right one, once.
func (s *sessions) spend(token string) bool {
	hash := sha256.Sum256([]byte(token))
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.spent || subtle.ConstantTimeCompare(hash[:], s.token[:]) != 1 {
		return false
	}
	s.spent = true
	return true
}

// add opens a session and returns its secret.
func (s *sessions) add() string {
	secret := rand.Text()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open = append(s.open, session{hash: sha256.Sum256([]byte(secret)), ends: s.now().Add(sessionLife)})
	s.open = s.open[max(0, len(s.open)-maxSessions):]
	return secret
}

// end returns when the session of a request ends. It reports false if there is none.
func (s *sessions) end(r *http.Request) (time.Time, bool) {
	cookie, err := r.Cookie(s.cookie)
	if err != nil {
		return time.Time{}, false
	}
	hash := sha256.Sum256([]byte(cookie.Value))
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	s.open = slices.DeleteFunc(s.open, func(one session) bool { return !now.Before(one.ends) })
	i := slices.IndexFunc(s.open, func(one session) bool { return subtle.ConstantTimeCompare(one.hash[:], hash[:]) == 1 })
	if i < 0 {
		return time.Time{}, false
	}
	return s.open[i].ends, true
}

// required rejects requests without a session, and ends those that last longer.
func (s *sessions) required(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ends, found := s.end(r)
		if !found {
			fail(w, http.StatusUnauthorized, "you are not signed in, or your session has ended", trySignIn)
			return
		}
		ctx, cancel := context.WithDeadline(r.Context(), ends)
		defer cancel()
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}
