package helm

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"helm.sh/helm/v4/pkg/chart/common"

	"github.com/drover-dev/drover/internal/registry/artifact"
)

// cpu returns the CPU time of this process, without the API server.
func cpu(b *testing.B) time.Duration {
	b.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// BenchmarkInstall installs a chart of four objects under new names.
func BenchmarkInstall(b *testing.B) {
	e := newBench(b)
	e.sync(b)
	chart := e.put(b, "1.0.0", four)
	e.mustApply(b, e.want("first", chart))
	e.wire.Restart()
	before := cpu(b)
	n := 0
	for b.Loop() {
		want := e.want(fmt.Sprintf("bench-%d", n), chart)
		want.Values = map[string]any{"greeting": "hi"}
		e.mustApply(b, want)
		n++
	}
	b.ReportMetric(float64((cpu(b)-before).Microseconds())/float64(n), "cpu-µs/op")
	b.ReportMetric(float64(len(e.wire.Requests()))/float64(n), "requests/op")
}

// BenchmarkUpgrade changes a value.
func BenchmarkUpgrade(b *testing.B) {
	e := newBench(b)
	e.sync(b)
	want := e.want("web", e.put(b, "1.0.0", four))
	e.observed(b, want, e.mustApply(b, want))
	e.wire.Restart()
	before := cpu(b)
	n := 0
	for b.Loop() {
		want.Values = map[string]any{"greeting": fmt.Sprint(n)}
		e.observed(b, want, e.mustApply(b, want))
		n++
	}
	b.ReportMetric(float64((cpu(b)-before).Microseconds())/float64(n), "cpu-µs/op")
	b.ReportMetric(float64(len(e.wire.Requests()))/float64(n), "requests/op")
}

// BenchmarkRender measures the templates alone.
func BenchmarkRender(b *testing.B) {
	all := &archives{by: map[string][]byte{}}
	resolved := all.put(b, "1.0.0", four)
	charts := newCharts(all)
	capabilities := common.DefaultCapabilities.Copy()
	b.ReportAllocs()
	for b.Loop() {
		chart, err := charts.load(b.Context(), artifact.Ref{Name: "app"}, resolved)
		if err != nil {
			b.Fatal(err)
		}
		values := map[string]any{"greeting": "hi"}
		if err := process(chart, values); err != nil {
			b.Fatal(err)
		}
		r := rendering{chart: chart, values: values, capabilities: capabilities, release: common.ReleaseOptions{Name: "web", Namespace: "default"}}
		if _, err := r.run(); err != nil {
			b.Fatal(err)
		}
	}
}
