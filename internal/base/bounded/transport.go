package bounded

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/drover-dev/drover/internal/base/text"
)

// MaxError is where the body of an error response ends. Its text may become part of a condition.
const MaxError = 16 << 10

// maxHost is the longest name of a host.
const maxHost = 255

// ErrTimeout is the cause of a request that exceeded Limits.Timeout.
var ErrTimeout = errors.New("request timed out")

// Limits apply to each response of a kind of peer.
type Limits struct {
	// Peer names the kind of peer in errors.
	Peer string
	// Body is the maximum size of a response after decompression.
	Body int64
	// Event is the maximum size of one event of a stream; Body if zero.
	Event int64
	// Memory is the maximum of what a response in JSON takes once it is decoded, as estimated by its
	// number of values. An event of a stream may take an eighth of it. Zero means that responses are
	// not measured.
	Memory int64
	// Item is how much of Memory an item of a list takes.
	Item int64
	// Timeout limits a request and its response, except for the body of a stream. Zero means that
	// only the context of the request does.
	Timeout time.Duration
	// Pause bounds the pause that a peer can request, for clients that wait for it by themselves.
	// Zero means that it is not changed.
	Pause time.Duration
	// Elsewhere allows redirects. The next transport decides where to.
	Elsewhere bool
}

// eventShare is the share of Limits.Memory that an event may take.
const eventShare = 8

// TooLargeError means that a response exceeds a limit.
type TooLargeError struct {
	Peer  string
	Limit int64
	// Decoded is set if the response itself is small, but not what it becomes in memory.
	Decoded bool
}

func (e *TooLargeError) Error() string {
	if e.Decoded {
		return fmt.Sprintf("response of the %s has so many values that it takes more than %d bytes of memory", e.Peer, e.Limit)
	}
	return fmt.Sprintf("response of the %s is larger than %d bytes", e.Peer, e.Limit)
}

// RedirectError means that a peer redirects, which it has no reason to.
type RedirectError struct{ Peer, Host string }

func (e *RedirectError) Error() string {
	return fmt.Sprintf("the %s redirects to %q, which is not followed", e.Peer, e.Host)
}

// Transport applies limits to the responses of another transport.
func Transport(next http.RoundTripper, l Limits) http.RoundTripper {
	if l.Event == 0 {
		l.Event = l.Body
	}
	return &transport{next: next, limits: l}
}

type transport struct {
	next   http.RoundTripper
	limits Limits
}

func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(r.Context())
	stop := func() { cancel(nil) }
	if t.limits.Timeout > 0 {
		timer := time.AfterFunc(t.limits.Timeout, func() { cancel(ErrTimeout) })
		stop = func() { timer.Stop(); cancel(nil) }
		if IsStream(r) {
			defer timer.Stop() // The rest of the time it is the reader who decides.
		}
	}
	response, err := t.next.RoundTrip(r.WithContext(ctx))
	if err != nil {
		err = explain(ctx, err)
		stop()
		return nil, err
	}
	if err := t.checkRedirect(r, response); err != nil {
		_ = response.Body.Close()
		stop()
		return nil, err
	}
	t.limitPause(response.Header)
	if response.StatusCode == http.StatusSwitchingProtocols { // The connection is the caller's now.
		context.AfterFunc(r.Context(), stop)
		return response, nil
	}
	response.Body = t.body(ctx, stop, r, response)
	return response, nil
}

// body returns the limited body of a response.
func (t *transport) body(ctx context.Context, stop func(), r *http.Request, response *http.Response) *body {
	b := &body{ReadCloser: response.Body, ctx: ctx, stop: stop, left: t.limits.Body, limits: t.limits, budget: budgetOf(ctx)}
	switch {
	case response.StatusCode >= http.StatusBadRequest:
		b.left, b.truncate = min(MaxError, t.limits.Body), true
	case IsStream(r) && strings.Contains(response.Header.Get("Content-Type"), "json"):
		b.scan = &scanner{limits: t.limits, stream: true}
	case t.limits.Memory > 0 && !isMeasured(response.Body):
		b.scan = &scanner{limits: t.limits}
	}
	return b
}

// isMeasured reports whether another transport with limits has measured the body already.
func isMeasured(from io.ReadCloser) bool {
	b, ok := from.(*body)
	return ok && b.scan != nil
}

// IsStream reports whether the response to a request has no end of its own.
func IsStream(r *http.Request) bool {
	query := r.URL.RawQuery
	if !strings.Contains(query, "watch=") && !strings.Contains(query, "follow=") {
		return false
	}
	values := r.URL.Query()
	return isTrue(values.Get("watch")) || isTrue(values.Get("follow"))
}

func isTrue(value string) bool { return value == "true" || value == "1" }

// checkRedirect rejects redirects to the peer itself as well: clients resolve them against the
// address that they know, which is not always the one that the peer has here.
func (t *transport) checkRedirect(r *http.Request, response *http.Response) error {
	if t.limits.Elsewhere || response.StatusCode < http.StatusMultipleChoices || response.StatusCode >= http.StatusBadRequest {
		return nil
	}
	to := response.Header.Get("Location")
	if to == "" {
		return nil
	}
	target, err := r.URL.Parse(to)
	if err != nil {
		return &RedirectError{Peer: t.limits.Peer, Host: "an invalid URL"}
	}
	return &RedirectError{Peer: t.limits.Peer, Host: text.TruncateTo(target.Host, maxHost)}
}

// explain names the time limit as the cause of a canceled request.
func explain(ctx context.Context, err error) error {
	if err != nil && errors.Is(context.Cause(ctx), ErrTimeout) {
		return fmt.Errorf("%w: %w", ErrTimeout, err)
	}
	return err
}

func (t *transport) limitPause(h http.Header) {
	after, most := h.Get("Retry-After"), int(t.limits.Pause/time.Second)
	if after == "" || most == 0 {
		return
	}
	if seconds, err := strconv.Atoi(after); err != nil || seconds < 0 || seconds > most {
		h.Set("Retry-After", strconv.Itoa(most))
	}
}
