// Package tracetest is a collector of spans for tests: it implements OTLP over gRPC and records the
// received spans. Start with Start.
package tracetest

import (
	"context"
	"encoding/hex"
	"net"
	"slices"
	"sync"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	resource "go.opentelemetry.io/proto/otlp/resource/v1"
	"google.golang.org/grpc"
)

// Span is the relevant part of a span.
type Span struct {
	Trace, ID, Parent string
	Name              string
	// Service is the program that sent it.
	Service string
}

// Collector records spans.
type Collector struct {
	collector.UnimplementedTraceServiceServer

	// URL is the address of the collector.
	URL string

	mu    sync.Mutex
	spans []Span
}

// Start returns a collector that stops with the test.
func Start(t testing.TB) *Collector {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &Collector{URL: "http://" + l.Addr().String()}
	server := grpc.NewServer()
	collector.RegisterTraceServiceServer(server, c)
	go func() { _ = server.Serve(l) }()
	t.Cleanup(server.Stop)
	return c
}

// Export implements the collector's service.
func (c *Collector) Export(_ context.Context, request *collector.ExportTraceServiceRequest) (*collector.ExportTraceServiceResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, from := range request.GetResourceSpans() {
		for _, scope := range from.GetScopeSpans() {
			for _, s := range scope.GetSpans() {
				c.spans = append(c.spans, Span{
					Trace: hex.EncodeToString(s.GetTraceId()), ID: hex.EncodeToString(s.GetSpanId()), Parent: hex.EncodeToString(s.GetParentSpanId()),
					Name: s.GetName(), Service: service(from.GetResource()),
				})
			}
		}
	}
	return &collector.ExportTraceServiceResponse{}, nil
}

func service(r *resource.Resource) string {
	for _, a := range r.GetAttributes() {
		if a.GetKey() == "service.name" {
			return a.GetValue().GetStringValue()
		}
	}
	return ""
}

// Spans returns the spans received so far.
func (c *Collector) Spans() []Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.spans)
}
