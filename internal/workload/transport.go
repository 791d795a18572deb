package workload

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// errNoAnswer is the cause of a request that was canceled by its time limit.
var errNoAnswer = errors.New("request timed out")

// transport limits the time of each request except watches, and reports its outcome to the breaker.
type transport struct {
	next    http.RoundTripper
	timeout time.Duration
	breaker *breaker
}

func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(r.Context())
	timer := time.AfterFunc(t.timeout, func() { cancel(errNoAnswer) })
	response, err := t.next.RoundTrip(r.WithContext(ctx))
	if err != nil {
		timer.Stop()
		defer cancel(nil)
		return nil, t.failure(ctx, r, err)
	}
	t.breaker.answered()
	if isWatch(r) {
		timer.Stop()
	}
	response.Body = &body{ReadCloser: response.Body, done: func() { timer.Stop(); cancel(nil) }}
	return response, nil
}

// failure returns the error for the caller. A request that its caller canceled says nothing about
// the cluster; one that exceeded its deadline does.
func (t *transport) failure(ctx context.Context, r *http.Request, err error) error {
	switch {
	case errors.Is(context.Cause(ctx), errNoAnswer), errors.Is(r.Context().Err(), context.DeadlineExceeded):
		err = fmt.Errorf("%w: %w", errNoAnswer, err)
	case r.Context().Err() != nil:
		return err
	}
	t.breaker.failed(err)
	return err
}

func isWatch(r *http.Request) bool {
	return r.URL.Query().Get("watch") == "true" || r.URL.Query().Get("follow") == "true"
}

// body ends the context of a request when it is closed.
type body struct {
	io.ReadCloser
	done func()
}

func (b *body) Close() error {
	defer b.done()
	return b.ReadCloser.Close()
}
