package web

import (
	"net"
	"net/http"
	"slices"
	"strings"
)

// contentPolicy allows what the binary serves, and no other host.
const contentPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// maxBody bounds requests, which are small JSON objects.
const maxBody = 64 << 10

// guard protects all handlers: against DNS rebinding by the names of the server, against requests
// of other sites, and against embedding.
func guard(hosts []string, next http.Handler) http.Handler {
	protected := http.NewCrossOriginProtection().Handler(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", contentPolicy)
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Cache-Control", "no-store")
		if !slices.Contains(hosts, strings.ToLower(r.Host)) {
			fail(w, http.StatusMisdirectedRequest, "this server is not known as "+quote(r.Host), "Open the address that `drover ui` printed.")
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		protected.ServeHTTP(w, r)
	})
}

// loopbackHosts returns the names by which browsers may address a listener on loopback.
func loopbackHosts(address net.Addr) []string {
	_, port, err := net.SplitHostPort(address.String())
	if err != nil {
		return nil
	}
	return []string{"localhost:" + port, "127.0.0.1:" + port, "[::1]:" + port}
}
