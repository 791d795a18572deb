package client

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// defaultPause is how long to wait where a limit is reached and no time is told.
const defaultPause = 30 * time.Second

// maxPause bounds what a server can ask for.
const maxPause = 15 * time.Minute

// answer is what came back.
type answer struct {
	method, path string
	status       int
	header       http.Header
	body         []byte

	// messages are what the body says; without any it is not the API's.
	messages []string
}

// classify turns an answer into an error, or nil if it is a success. The API explains itself in
// sentences only; this is the one place that reads them.
func classify(a answer, now time.Time) *Error {
	if a.status >= 200 && a.status < 300 {
		return nil
	}
	a.messages = decodeMessages(a.body)
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
		// A proxy or a wrong address answers so too, and must not be believed.
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

// forbidden tells the API's refusal from that of a limiter in front of it, which sends a page or an
// exhausted budget.
func (a answer) forbidden() Kind {
	if len(a.messages) == 0 || a.header.Get("X-RateLimit-Remaining") == "0" {
		return RateLimited
	}
	return Forbidden
}

// refusals are the sentences that mean something else than that the request is wrong.
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

// decodeMessages reads both forms of error bodies. A body without a message is none: what stands in
// front of an API speaks JSON too.
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

// pause reads how long a limiter wants to be left alone.
func pause(h http.Header, now time.Time) time.Duration {
	if seconds, err := strconv.Atoi(h.Get("Retry-After")); err == nil {
		return bounded(time.Duration(seconds) * time.Second)
	}
	if at, err := http.ParseTime(h.Get("Retry-After")); err == nil {
		return bounded(at.Sub(now))
	}
	if at, err := strconv.ParseInt(h.Get("X-RateLimit-Reset"), 10, 64); err == nil {
		return bounded(time.Unix(at, 0).Sub(now))
	}
	return defaultPause
}

func bounded(d time.Duration) time.Duration { return min(max(d, time.Second), maxPause) }
