package workload

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/drover-dev/drover/internal/base/bounded"
)

// Limits of what a workload cluster may send. Its administrator may run any API server.
const (
	// maxResponse fits every list that a cluster of a thousand machines has, in JSON.
	maxResponse = 64 << 20
	// maxMemory is what a response may take once it is decoded. A list of a thousand Nodes takes
	// less than half of it.
	maxMemory = 256 << 20
	// maxItem is more than any kind takes in a list, without what it refers to.
	maxItem = 2 << 10
	// maxEvent is several times the largest object that etcd stores.
	maxEvent = 8 << 20
	// maxServerPause bounds how long clients wait by themselves when a cluster asks them to.
	maxServerPause = 10 * time.Second
)

// Limit wraps a transport to a workload cluster with the limits that apply to all of them.
func Limit(timeout time.Duration) func(http.RoundTripper) http.RoundTripper {
	limits := bounded.Limits{
		Peer: "workload cluster", Body: maxResponse, Event: maxEvent, Memory: maxMemory, Item: maxItem, Timeout: timeout, Pause: maxServerPause,
	}
	return func(next http.RoundTripper) http.RoundTripper {
		return &measurable{next: bounded.Transport(next, limits)}
	}
}

// transport reports the outcome of each request to the breaker.
type transport struct {
	next    http.RoundTripper
	breaker *breaker
}

func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := t.next.RoundTrip(r)
	if err != nil {
		return nil, t.failure(r, err)
	}
	t.breaker.answered()
	return response, nil
}

// failure returns the error for the caller. A request that its caller canceled says nothing about
// the cluster; one that exceeded its deadline does.
func (t *transport) failure(r *http.Request, err error) error {
	switch {
	case errors.Is(err, bounded.ErrTimeout):
	case errors.Is(r.Context().Err(), context.DeadlineExceeded):
		err = fmt.Errorf("%w: %w", bounded.ErrTimeout, err)
	case r.Context().Err() != nil:
		return err
	}
	t.breaker.failed(err)
	return err
}
