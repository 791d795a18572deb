package packet_test

import (
	"bytes"
	"context"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/drover-dev/drover/api/infrastructure/v1beta1"
)

func pick[T any](r *rand.Rand, values ...T) T { return values[r.IntN(len(values))] }

// modelFault is a fault of a request to metal.
type modelFault struct {
	name string
	send func(*model, *http.Request) (*http.Response, error)
}

var modelFaults = []modelFault{
	{"not sent", func(*model, *http.Request) (*http.Response, error) { return nil, errModelLost }},
	{"response lost", func(m *model, r *http.Request) (*http.Response, error) { m.execute(r); return nil, errModelLost }},
	{"response truncated", func(m *model, r *http.Request) (*http.Response, error) {
		w := m.execute(r)
		w.Body.Truncate(w.Body.Len() / 2)
		return w.Result(), nil
	}},
	{"error", func(m *model, _ *http.Request) (*http.Response, error) { return m.fail(), nil }},
	{"error afterwards", func(m *model, r *http.Request) (*http.Response, error) { m.execute(r); return m.fail(), nil }},
}

const (
	modelJump = "the clock is set"
	modelKill = "the manager is killed"
	modelYear = 365 * 24 * time.Hour
)

// lateFault is an order that arrives after its client gave up.
var lateFault = modelFault{"late", func(m *model, r *http.Request) (*http.Response, error) {
	data, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	r = r.Clone(context.Background())
	r.Body = io.NopCloser(bytes.NewReader(data))
	m.late = append(m.late, lateRequest{r, m.clock.Passed() + time.Duration(m.random.Int64N(int64(lateness)))})
	return nil, context.DeadlineExceeded
}}

// fail returns a response that is not from the API.
func (m *model) fail() *http.Response {
	w := httptest.NewRecorder()
	w.WriteHeader(pick(m.random, http.StatusInternalServerError, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusTooManyRequests, http.StatusForbidden))
	_, _ = w.WriteString(pick(m.random, "", "<html>", `{"errors":["Oh snap"]}`))
	return w.Result()
}

// RoundTrip sends a request of the controller, or injects a fault.
func (m *model) RoundTrip(r *http.Request) (*http.Response, error) {
	if dead, sent := m.killed(); dead {
		if sent {
			m.note("%s %s is the last request of a manager: %d", r.Method, r.URL.Path, m.execute(r).Code)
		}
		return nil, errModelKilled
	}
	odds := 8
	if r.Method != http.MethodGet {
		odds = 2 // what changes something is what matters
	}
	if !m.faulty || m.random.IntN(odds) > 0 {
		w := m.execute(r)
		m.note("%s %s: %d", r.Method, r.URL.Path, w.Code)
		return w.Result(), nil
	}
	f := modelFaults[m.random.IntN(len(modelFaults))]
	if r.Method == http.MethodPost && m.random.IntN(3) == 0 {
		f = lateFault // the hardest: nothing can be found yet
	}
	m.note("%s %s:", r.Method, r.URL.Path)
	m.strike(f.name)
	return f.send(m, r)
}

// killed counts an operation. It reports whether the manager is dead, and whether it could still
// send this operation.
func (m *model) killed() (dead, sent bool) {
	switch {
	case m.alive < 0:
		return false, true
	case m.alive == 0:
		return true, false
	}
	m.alive--
	return m.alive == 0, m.random.IntN(2) == 0
}

// faultyClient is the management plane as a manager sees it: writes fail, before or after they are
// executed.
type faultyClient struct {
	client.Client
	m *model
}

func (c faultyClient) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
	return c.m.write(obj, func(obj client.Object) error { return c.Client.Patch(ctx, obj, patch, opts...) })
}

func (c faultyClient) Status() client.SubResourceWriter { return faultyStatus{c.Client.Status(), c.m} }

type faultyStatus struct {
	client.SubResourceWriter
	m *model
}

func (s faultyStatus) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
	return s.m.write(obj, func(obj client.Object) error { return s.SubResourceWriter.Patch(ctx, obj, patch, opts...) })
}

// write executes a write of the manager, unless a fault prevents it.
func (m *model) write(obj client.Object, write func(client.Object) error) error {
	dead, sent := m.killed()
	if !dead && (!m.faulty || m.random.IntN(6) > 0) {
		return write(obj)
	}
	if dead && sent || !dead && m.random.IntN(2) == 0 {
		m.note("the response to a write is lost: %v", write(obj.DeepCopyObject().(client.Object)))
	}
	if dead {
		return errModelKilled
	}
	return apierrors.NewServerTimeout(infrav1.GroupVersion.WithResource("packetmachines").GroupResource(), "patch", 1)
}
