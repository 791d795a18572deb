package manager_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/drover-dev/drover/internal/test/tracetest"
)

func TestReconcileTraceHasTheLoggedID(t *testing.T) {
	server, _ := ready(t)
	c := tracetest.Start(t)
	m := launch(t, server.Kubeconfig(t), "--install=false", "--v=4", "--otlp-endpoint="+c.URL)
	m.awaitReady(t)
	create(t, newClient(t, server.Config), server.Namespace(t), plainCluster)
	eventually(t, func() error {
		spans := c.Spans()
		for _, s := range spans {
			uuid := strings.Join([]string{s.Trace[:8], s.Trace[8:12], s.Trace[12:16], s.Trace[16:20], s.Trace[20:]}, "-")
			if strings.Contains(s.Name, "/apis/cluster.x-k8s.io/") && strings.Contains(m.Log(), `"reconcileID":"`+uuid+`"`) {
				return nil
			}
		}
		return fmt.Errorf("none of %d spans is that of a reconcile", len(spans))
	})
}
