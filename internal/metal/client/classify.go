package client

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// defaultPause is how long to wait if a limit is reached and the response has no time.
const defaultPause = 30 * time.Second

// maxPause bounds the wait that a server can request.
const maxPause = 15 * time.Minute

// answer is a response.
type answer struct {
	method, path string
	status       int
	header       http.Header
	body         []byte

	// messages are the error messages in the body; without any, the response is not from the API.
	messages []string
}

// classify turns a response into an error, or nil on success. The API explains errors only in
// sentences; this is the one place that parses them.
func classify(a answer, now time.Time) *Error {
	if a.status >= 200 && a.status < 300 {
		return nil
	}
	a.messages = decodeMessages(a.body)
	if a.status >= 300 && a.status < 400 {
		a.messages = []string{"the API redirects to another URL, which must not receive the token: use its final URL"}
	}
	e := &Error{Status: a.status, Messages: a.messages, Kind: a.kind()}
	if e.Kind == RateLimited {
		e.After = pause(a.header, now)
	}
	return e
}

func (a answer) kind() Kind {
	switch a.status {
	case http.StatusTooManyRequests:
		return RateLimited
	case http.StatusUnauthorized:
		return Unauthorized
	case http.StatusForbidden:
		return a.forbidden()
	case http.StatusNotFound, http.StatusGone:
		// A proxy or a wrong address responds the same way, so don't trust it.
		if len(a.messages) > 0 {
			return NotFound
		}
		return Unavailable
	case http.StatusUnprocessableEntity, http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusMethodNotAllowed:
		return a.refusal()
	case http.StatusServiceUnavailable:
		if mentions(a.messages, "no available hardware reservations") {
			return Capacity
		}
	}
	if a.status >= http.StatusInternalServerError {
		return interrupted(a.method)
	}
	return Unavailable
}

// forbidden distinguishes a denial by the API from one by a rate limiter in front of it, which
// sends an HTML page or exhausted rate headers.
func (a answer) forbidden() Kind {
	if len(a.messages) == 0 || a.header.Get("X-RateLimit-Remaining") == "0" {
		return RateLimited
	}
	return Forbidden
}

// refusals are the sentences that mean something other than an invalid request.
var refusals = []struct {
	words string
	kind  Kind
}{
	{"no provisionable", Capacity},
	{"aren't available servers", Capacity},
	{"not provisionable", Capacity},
	{"no available hardware reservations", Capacity},
	{"while it is provisioning", Busy},
	{"already has session", Exists},
	{"quota", Quota},
	{"maximum number of", Quota},
}

func (a answer) refusal() Kind {
	for _, r := range refusals {
		if mentions(a.messages, r.words) {
			return r.kind
		}
	}
	if strings.HasSuffix(a.path, "/ips") && (mentions(a.messages, "limit") || mentions(a.messages, "approv")) {
		return Quota
	}
	return Invalid
}

// decodeMessages reads both encodings of error bodies. A body without a message is not from the
// API: proxies send JSON, too.
func decodeMessages(body []byte) []string {
	var e struct{ Errors, Error any }
	if err := json.Unmarshal(body, &e); err != nil {
		return nil
	}
	all, isList := e.Errors.([]any)
	if !isList {
		all = []any{e.Errors}
	}
	var messages []string
	for _, m := range append(all, e.Error) {
		if text := messageText(m); text != "" {
			messages = append(messages, text)
		}
	}
	return messages
}

func messageText(m any) string {
	switch m := m.(type) {
	case nil:
		return ""
	case string:
		return m
	default:
		data, _ := json.Marshal(m) // it was JSON before
		return string(data)
	}
}

func mentions(messages []string, words string) bool {
	for _, m := range messages {
		if strings.Contains(strings.ToLower(m), words) {
			return true
		}
	}
	return false
}

// pause returns how long a rate limiter asks to wait. Times are those of its own clock, which the
// response shows.
func pause(h http.Header, now time.Time) time.Duration {
	if date, err := http.ParseTime(h.Get("Date")); err == nil {
		now = date
	}
	if seconds, err := strconv.Atoi(h.Get("Retry-After")); err == nil {
		return clampPause(time.Duration(min(seconds, int(maxPause/time.Second))) * time.Second)
	}
	if at, err := http.ParseTime(h.Get("Retry-After")); err == nil {
		return clampPause(at.Sub(now))
	}
	if at, err := strconv.ParseInt(h.Get("X-RateLimit-Reset"), 10, 64); err == nil {
		return clampPause(time.Unix(at, 0).Sub(now))
	}
	return defaultPause
}

func clampPause(d time.Duration) time.Duration { return min(max(d, time.Second), maxPause) }
