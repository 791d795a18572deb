package manager

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"time"

	"github.com/google/uuid"
	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.40.0"
	"go.opentelemetry.io/otel/trace"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/drover-dev/drover/internal/version"
)

// flushTimeout bounds how long an unreachable collector can hold up the end of the process.
const flushTimeout = 2 * time.Second

// endpointVariables are OpenTelemetry's own names for what --otlp-endpoint sets.
var endpointVariables = []string{"OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"}

func (o Options) tracing() bool {
	for _, name := range endpointVariables {
		if os.Getenv(name) != "" {
			return true
		}
	}
	return o.OTLPEndpoint != ""
}

// startTracing sends spans of API requests and webhook calls to the configured endpoint, if there is one.
func (o Options) startTracing(ctx context.Context) (stop func(), err error) {
	if !o.tracing() {
		return func() {}, nil
	}
	var options []otlptracegrpc.Option
	if o.OTLPEndpoint != "" {
		options = append(options, otlptracegrpc.WithEndpointURL(o.OTLPEndpoint))
	}
	exporter, err := otlptracegrpc.New(ctx, options...)
	if err != nil {
		return nil, fmt.Errorf("preparing to send traces to %q: %w", o.OTLPEndpoint, err)
	}
	provider := newTracerProvider(exporter)
	otel.SetTracerProvider(provider)
	otel.SetTextMapPropagator(propagation.TraceContext{})
	return func() {
		flushCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTimeout)
		defer cancel()
		_ = provider.Shutdown(flushCtx) // nothing can be done about lost spans at this point
	}, nil
}

func newTracerProvider(exporter sdktrace.SpanExporter) *sdktrace.TracerProvider {
	return sdktrace.NewTracerProvider(
		sdktrace.WithBatcher(exporter),
		sdktrace.WithIDGenerator(reconcileIDs{}),
		sdktrace.WithResource(resource.NewSchemaless(
			semconv.ServiceName("drover-manager"),
			semconv.ServiceVersion(version.Get().Version),
		)),
	)
}

// reconcileIDs makes every API request of one reconcile part of one trace, whose ID is the reconcileID found in the logs. Upstream's
// reconcilers can't be wrapped to open a span of their own, but their context carries that ID.
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

// traceRequests makes a span of every request to the API server.
func traceRequests(next http.RoundTripper) http.RoundTripper {
	return otelhttp.NewTransport(next, otelhttp.WithSpanNameFormatter(func(_ string, r *http.Request) string {
		return r.Method + " " + r.URL.Path
	}))
}

// tracedServer makes a span of every webhook call, as a child of the API server's if that traces too. Without a tracer provider such
// spans cost nothing.
type tracedServer struct{ webhook.Server }

// Register wraps the hook and passes it on.
func (s tracedServer) Register(path string, hook http.Handler) {
	s.Server.Register(path, otelhttp.NewHandler(hook, path))
}
