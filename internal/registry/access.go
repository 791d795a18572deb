package registry

import (
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"net/http"
	"os"

	"github.com/distribution/distribution/v3/registry/api/errcode"
)

// User is the only user of the registry.
const User = "drover"

const passwordSum = sha256.Size

func readPassword(file string) ([passwordSum]byte, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return [passwordSum]byte{}, fmt.Errorf("reading the registry's password: %w", err)
	}
	data = bytes.TrimSpace(data)
	if len(data) == 0 {
		return [passwordSum]byte{}, fmt.Errorf("reading the registry's password: %q is empty\nDelete the file and run `drover up` to create a new password", file)
	}
	return sha256.Sum256(data), nil
}

// handler allows everyone to read, and requires the password to write. It always checks a password
// that a client sends, so that a login with a wrong password fails.
func (s *Server) handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		reads := r.Method == http.MethodGet || r.Method == http.MethodHead
		named := r.Header.Get("Authorization") != ""
		switch {
		case (!reads || named) && !s.authorized(r):
			w.Header().Set("WWW-Authenticate", `Basic realm="drover"`)
			_ = errcode.ServeJSON(w, errcode.ErrorCodeUnauthorized)
		case r.URL.Path == collectPath:
			s.serveCollect(w, r)
		case reads:
			s.app.ServeHTTP(w, r)
		default:
			s.write(w, r)
		}
	})
}

func (s *Server) authorized(r *http.Request) bool {
	user, password, ok := r.BasicAuth()
	sum := sha256.Sum256([]byte(password))
	return ok && user == User && subtle.ConstantTimeCompare(sum[:], s.password[:]) == 1
}

// write handles a request that writes, after a running Collect has finished.
func (s *Server) write(w http.ResponseWriter, r *http.Request) {
	if err := s.writes.Acquire(r.Context(), 1); err != nil {
		return // the client disconnected
	}
	defer s.writes.Release(1)
	s.app.ServeHTTP(w, r)
}
