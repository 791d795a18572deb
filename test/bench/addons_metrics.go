package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	kubeclient "k8s.io/client-go/kubernetes"
)

// sum adds up the values of a metric with matching labels.
func sum(raw []byte, name string, so func(label map[string]string) bool) (float64, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(raw))
	if err != nil {
		return 0, err
	}
	total := 0.0
	for _, m := range families[name].GetMetric() {
		if so(labelsOf(m)) {
			total += m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	return total, nil
}

func labelsOf(m *dto.Metric) map[string]string {
	labels := map[string]string{}
	for _, l := range m.GetLabel() {
		labels[l.GetName()] = l.GetValue()
	}
	return labels
}

// requests returns the number of requests to a server about objects, without watches.
func requests(ctx context.Context, c kubeclient.Interface) (float64, error) {
	raw, err := c.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return 0, err
	}
	return sum(raw, "apiserver_request_total", func(label map[string]string) bool {
		return label["resource"] != "" && label["verb"] != "WATCH" && label["resource"] != "leases" && label["verb"] != "LIST" &&
			!strings.HasPrefix(label["group"], "apiextensions")
	})
}

// reconciles returns the number of reconciles of HelmChartProxies and HelmReleaseProxies.
func (w *addonWorld) reconciles(ctx context.Context) (float64, error) {
	raw, err := w.metrics(ctx)
	if err != nil {
		return 0, err
	}
	return sum(raw, "controller_runtime_reconcile_total", func(label map[string]string) bool {
		return label["controller"] == "helmchartproxy" || label["controller"] == "helmreleaseproxy"
	})
}

// metrics reads the manager's metrics. Their address is among its arguments.
func (w *addonWorld) metrics(ctx context.Context) ([]byte, error) {
	pid, err := w.manager(ctx)
	if err != nil {
		return nil, err
	}
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		return nil, err
	}
	_, rest, _ := strings.Cut(string(line), "--metrics-addr=")
	address, _, _ := strings.Cut(rest, "\x00")
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+address+"/metrics", http.NoBody)
	if err != nil {
		return nil, err
	}
	administrator, err := tls.LoadX509KeyPair(filepath.Join(w.bench.home, "pki", "admin.crt"), filepath.Join(w.bench.home, "pki", "admin.key"))
	if err != nil {
		return nil, err
	}
	reader := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{
		Certificates:       []tls.Certificate{administrator},
		InsecureSkipVerify: true, // It is a process of this benchmark, on loopback.
	}}}
	response, err := reader.Do(request)
	if err != nil {
		return nil, fmt.Errorf("reading the manager's metrics: %w", err)
	}
	defer response.Body.Close()
	return io.ReadAll(response.Body)
}
