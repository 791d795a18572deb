package receiver

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"hash"
	"net/http"
	"strings"
)

// Headers of webhooks. The first two have an HMAC of the body in hexadecimal form, the last one has
// the token itself.
const (
	hubSignature   = "X-Hub-Signature-256" // GitHub, Gitea, Forgejo
	giteaSignature = "X-Gitea-Signature"
	gitlabToken    = "X-Gitlab-Token"
)

// proof compares what a request claims with a token. The body is written to it.
type proof struct {
	hash.Hash

	token []byte
}

func newProof(token []byte) *proof {
	return &proof{Hash: hmac.New(sha256.New, token), token: token}
}

// verifies reports whether one of the headers proves that the sender knows the token. It takes the
// same time for every wrong value.
func (p *proof) verifies(h http.Header) bool {
	want := hex.EncodeToString(p.Sum(nil))
	hub, prefixed := strings.CutPrefix(h.Get(hubSignature), "sha256=")
	signed := prefixed && equal(hub, want)
	signed = equal(h.Get(giteaSignature), want) || signed
	return equal(h.Get(gitlabToken), string(p.token)) || signed
}

// equal compares hashes, so that lengths don't show either.
func equal(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}
