package transfer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// ErrStalled says that a registry stopped in the middle.
var ErrStalled = errors.New("nothing came from the registry, and nothing went to it, for too long")

// watch ends requests that make no progress, however long they may take while they do. It also keeps them from going out in the clear,
// which a library might do because an address is near enough.
type watch struct {
	next      http.RoundTripper
	stall     time.Duration
	plainHTTP bool
}

func (w *watch) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Scheme != "https" && !w.plainHTTP {
		return nil, fmt.Errorf("plain HTTP to %q is not allowed: use --plain-http if the registry has no certificate", r.URL.Host)
	}
	ctx, cancel := context.WithCancelCause(r.Context())
	p := &progress{ctx: ctx, cancel: cancel, stall: w.stall}
	p.timer = time.AfterFunc(w.stall, func() { cancel(ErrStalled) })
	r = r.Clone(ctx)
	if r.Body != nil && r.Body != http.NoBody {
		r.Body = &moving{ReadCloser: r.Body, progress: p}
	}
	response, err := w.next.RoundTrip(r)
	if err != nil {
		p.end()
		return nil, p.explain(err)
	}
	response.Body = &moving{ReadCloser: response.Body, progress: p, last: true}
	return response, nil
}

// progress is that of one request.
type progress struct {
	ctx    context.Context // It ends with the request, and so does this.
	cancel context.CancelCauseFunc
	timer  *time.Timer
	stall  time.Duration
}

func (p *progress) end() {
	p.timer.Stop()
	p.cancel(nil)
}

// explain replaces what the end of a request looks like by why it was ended.
func (p *progress) explain(err error) error {
	if errors.Is(context.Cause(p.ctx), ErrStalled) {
		return ErrStalled
	}
	return err
}

// moving is a body that tells when some of it was read.
type moving struct {
	io.ReadCloser
	*progress

	// last says that the request ends with it.
	last bool
}

func (m *moving) Read(p []byte) (int, error) {
	n, err := m.ReadCloser.Read(p)
	if n > 0 {
		m.timer.Reset(m.stall)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		err = m.explain(err)
	}
	return n, err
}

func (m *moving) Close() error {
	if m.last {
		defer m.end()
	}
	return m.ReadCloser.Close()
}
