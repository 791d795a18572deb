// Package tracing exports spans to an OpenTelemetry collector, configured by a flag or by
// OpenTelemetry's own variables. Without a collector, spans cost nothing.
package tracing

import (
	"context"
	"fmt"
	"os"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.40.0"

	"github.com/drover-dev/drover/internal/base/version"
)

// flushTimeout bounds how long an unreachable collector can delay the exit of the process.
const flushTimeout = 2 * time.Second

// endpointVariables are OpenTelemetry's variables for the address of a collector.
var endpointVariables = []string{"OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"}

// Options select the sender and the destination of spans.
type Options struct {
	// Service is the name of the program.
	Service string
	// Endpoint is the URL of a collector; if it is empty, the environment decides.
	Endpoint string
	// IDs generates the IDs of traces and spans; nil means random ones.
	IDs sdktrace.IDGenerator
}

// Enabled reports whether a collector is configured.
func (o Options) Enabled() bool {
	for _, name := range endpointVariables {
		if os.Getenv(name) != "" {
			return true
		}
	}
	return o.Endpoint != ""
}

// Start exports spans, if a collector is configured, until stop is called, which flushes them.
func Start(ctx context.Context, o Options) (stop func(), err error) {
	if !o.Enabled() {
		return func() {}, nil
	}
	var options []otlptracegrpc.Option
	if o.Endpoint != "" {
		options = append(options, otlptracegrpc.WithEndpointURL(o.Endpoint))
	}
	exporter, err := otlptracegrpc.New(ctx, options...)
	if err != nil {
		return nil, fmt.Errorf("setting up traces to %q: %w", o.Endpoint, err)
	}
	provider := o.provider(exporter)
	otel.SetTracerProvider(provider)
	otel.SetTextMapPropagator(propagation.TraceContext{})
	return func() {
		flushCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTimeout)
		defer cancel()
		_ = provider.Shutdown(flushCtx) // nothing can be done about lost spans at this point
	}, nil
}

func (o Options) provider(exporter sdktrace.SpanExporter) *sdktrace.TracerProvider {
	options := []sdktrace.TracerProviderOption{
		sdktrace.WithBatcher(exporter),
		sdktrace.WithResource(resource.NewSchemaless(semconv.ServiceName(o.Service), semconv.ServiceVersion(version.Get().Version))),
	}
	if o.IDs != nil {
		options = append(options, sdktrace.WithIDGenerator(o.IDs))
	}
	return sdktrace.NewTracerProvider(options...)
}

// Parent returns the span of a context as the value of the header traceparent, or "".
func Parent(ctx context.Context) string {
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	return carrier.Get("traceparent")
}

// Within returns a context with the span of such a value. An invalid value changes nothing.
func Within(ctx context.Context, parent string) context.Context {
	return propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{"traceparent": parent})
}
