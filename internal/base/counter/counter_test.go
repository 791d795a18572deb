package counter

import (
	"strings"
	"sync/atomic"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

func TestCountersAreServed(t *testing.T) {
	registry := prometheus.NewRegistry()
	var moves atomic.Int64
	if err := Register(registry, "vip", Counter{Name: "moves_total", Help: "Moves.", Value: &moves}); err != nil {
		t.Fatal(err)
	}
	moves.Add(3)
	want := "# HELP drover_vip_moves_total Moves.\n# TYPE drover_vip_moves_total counter\ndrover_vip_moves_total 3\n"
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
	if err := Register(registry, "vip", Counter{Name: "moves_total", Help: "Moves.", Value: &moves}); err == nil {
		t.Error("a counter is registered twice")
	}
	if err := Register(nil, "vip", Counter{Name: "moves_total", Value: &moves}); err != nil {
		t.Errorf("without a registry: %v", err)
	}
}

func TestActionsStartAtZero(t *testing.T) {
	registry := prometheus.NewRegistry()
	actions := ByAction("drover_actions_total", "Actions.", "install", "upgrade")
	if err := Serve(registry, actions); err != nil {
		t.Fatal(err)
	}
	actions.WithLabelValues("upgrade").Inc()
	want := "# HELP drover_actions_total Actions.\n# TYPE drover_actions_total counter\ndrover_actions_total{action=\"install\"} 0\ndrover_actions_total{action=\"upgrade\"} 1\n"
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}

func TestServeSharesCollectors(t *testing.T) {
	registry := prometheus.NewRegistry()
	for range 2 {
		if err := Serve(registry, ByAction("drover_actions_total", "Actions.", "install")); err != nil {
			t.Errorf("a second manager in one process: %v", err)
		}
	}
	if err := Serve(registry, prometheus.NewCounter(prometheus.CounterOpts{Name: "drover_actions_total", Help: "Other."})); err == nil {
		t.Error("two metrics of one name are served")
	}
}
