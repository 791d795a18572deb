package lifecycle

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/model/demand"
	"github.com/drover-dev/drover/internal/test/kubetest"
)

// withoutMachines returns a kubeconfig for the plane, whose manager finds no machine that is free.
func (w *world) withoutMachines() string {
	w.Helper()
	target, err := url.Parse(w.config.Host)
	w.must(err)
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.Transport, err = rest.TransportFor(w.config)
	w.must(err)
	server := httptest.NewServer(http.HandlerFunc(func(response http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		if missing := askedFor(body); len(missing) > 0 && r.URL.Query().Get("dryRun") == metav1.DryRunAll {
			response.Header().Add("Warning", "299 - "+strconv.Quote(demand.Warning(missing)))
		}
		proxy.ServeHTTP(response, r)
	}))
	w.Cleanup(server.Close)
	file := filepath.Join(w.dir, "without-machines.kubeconfig")
	w.must(clientcmd.WriteToFile(*kubetest.AsKubeconfig(&rest.Config{Host: server.URL}), file))
	return file
}

// askedFor returns the machines that a command asks for in a request.
func askedFor(body []byte) []demand.Machines {
	object, check := &metav1.PartialObjectMetadata{}, &demand.Check{}
	if json.Unmarshal(body, object) != nil || json.Unmarshal([]byte(object.Annotations[anywherev1.CapacityCheckAnnotation]), check) != nil {
		return nil
	}
	return check.Machines
}

func TestUpgradeOfAManagementClusterNeedsSpareMachines(t *testing.T) {
	w := newWorld(t)
	own := w.workload("mgmt")
	own.Config.Cluster.Spec.Management = nil
	w.must(own.connect(t.Context()))
	w.must(own.applyAll(t.Context()))
	m := w.management()
	m.Config, m.Own = own.Config, w.withoutMachines()
	w.must(w.run(m.setupUpgrade)) // It needs no machines.
	m.Config.Cluster.Spec.KubernetesVersion = "1.36"
	m.SkipCapacity = true
	w.must(w.run(m.setupUpgrade))
	m.SkipCapacity = false
	err := w.run(m.setupUpgrade)
	for _, want := range []string{"not enough machines: 1 of plan local.small in da needed", "--skip-validations=capacity"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got error %v, want one that contains %q", err, want)
		}
	}
}
