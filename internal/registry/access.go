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

// User is the only one there is.
const User = "drover"

const passwordSum = sha256.Size

func readPassword(file string) ([passwordSum]byte, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return [passwordSum]byte{}, fmt.Errorf("reading the password of the registry: %w", err)
	}
	data = bytes.TrimSpace(data)
	if len(data) == 0 {
		return [passwordSum]byte{}, fmt.Errorf("there is no password for the registry in %q: remove the file and run `drover up` to get a new one", file)
	}
	return sha256.Sum256(data), nil
}

// handler lets everybody read, and whoever has the password write. A password that is sent along is checked in any case, so that a login
// with a wrong one fails.
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

// write lets a request through once nothing is being removed.
func (s *Server) write(w http.ResponseWriter, r *http.Request) {
	if err := s.writes.Acquire(r.Context(), 1); err != nil {
		return // The client has gone.
	}
	defer s.writes.Release(1)
	s.app.ServeHTTP(w, r)
}
