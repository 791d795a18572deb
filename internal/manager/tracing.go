package manager

import (
	"context"
	"encoding/binary"
	"math/rand/v2"
	"net/http"

	"github.com/google/uuid"
	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/drover-dev/drover/internal/base/tracing"
)

// traces exports spans of API requests and webhook calls.
func (o Options) traces() tracing.Options {
	return tracing.Options{Service: "drover-manager", Endpoint: o.OTLPEndpoint, IDs: reconcileIDs{}}
}

// reconcileIDs puts all API requests of a reconcile into one trace, whose ID is the reconcileID in
// the logs. Upstream's reconcilers can't be wrapped to open a span, but their context carries that
// ID.
type reconcileIDs struct{}

var _ sdktrace.IDGenerator = reconcileIDs{}

// NewIDs is called for spans that have no parent.
func (g reconcileIDs) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	id, err := uuid.Parse(string(controller.ReconcileIDFromContext(ctx)))
	if err != nil {
		id = uuid.New()
	}
	return trace.TraceID(id), g.NewSpanID(ctx, trace.TraceID(id))
}

// NewSpanID only has to be unique within a trace.
func (reconcileIDs) NewSpanID(context.Context, trace.TraceID) trace.SpanID {
	var id trace.SpanID
	for !id.IsValid() {
		binary.NativeEndian.PutUint64(id[:], rand.Uint64()) //nolint:gosec // not a secret
	}
	return id
}

// traceRequests creates a span for every request to the API server.
func traceRequests(next http.RoundTripper) http.RoundTripper {
	return otelhttp.NewTransport(next, otelhttp.WithSpanNameFormatter(func(_ string, r *http.Request) string {
		return r.Method + " " + r.URL.Path
	}))
}

// tracedServer creates a span for every webhook call, as a child of the API server's span if there
// is one, and rejects clients other than the API server. Without a tracer provider, spans cost
// nothing.
type tracedServer struct {
	webhook.Server

	clients *callers
}

// Register wraps the hook and passes it on.
func (s tracedServer) Register(path string, hook http.Handler) {
	s.Server.Register(path, otelhttp.NewHandler(s.clients.guard(path, hook), path))
}
