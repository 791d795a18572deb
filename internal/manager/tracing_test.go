package manager_test

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/grpc"
)

// sink is a collector that remembers which spans belong to which trace.
type sink struct {
	collector.UnimplementedTraceServiceServer
	mu    sync.Mutex
	spans map[string][]string
}

func (s *sink) Export(_ context.Context, req *collector.ExportTraceServiceRequest) (*collector.ExportTraceServiceResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, resource := range req.GetResourceSpans() {
		for _, scope := range resource.GetScopeSpans() {
			for _, span := range scope.GetSpans() {
				id := fmt.Sprintf("%x", span.GetTraceId())
				s.spans[id] = append(s.spans[id], span.GetName())
			}
		}
	}
	return &collector.ExportTraceServiceResponse{}, nil
}

func TestTheTraceOfAReconcileHasTheIDThatIsInTheLogs(t *testing.T) {
	server, _ := ready(t)
	s := startSink(t)
	m := launch(t, server.Kubeconfig(t), "--install=false", "--v=4", "--otlp-endpoint=http://"+s.addr)
	m.awaitReady(t)
	create(t, newClient(t, server.Config), server.Namespace(t), plainCluster)
	eventually(t, func() error {
		for id, spans := range s.traces() {
			uuid := strings.Join([]string{id[:8], id[8:12], id[12:16], id[16:20], id[20:]}, "-")
			if strings.Contains(m.Log(), `"reconcileID":"`+uuid+`"`) && strings.Contains(strings.Join(spans, "\n"), "/apis/cluster.x-k8s.io/") {
				return nil
			}
		}
		return fmt.Errorf("none of %d traces is that of a reconcile", len(s.traces()))
	})
}

type runningSink struct {
	*sink
	addr string
}

func startSink(t *testing.T) runningSink {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &sink{spans: map[string][]string{}}
	g := grpc.NewServer()
	collector.RegisterTraceServiceServer(g, s)
	go func() { _ = g.Serve(l) }()
	t.Cleanup(g.Stop)
	return runningSink{sink: s, addr: l.Addr().String()}
}

func (s *sink) traces() map[string][]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := map[string][]string{}
	for id, spans := range s.spans {
		out[id] = spans
	}
	return out
}
