package addons_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"sigs.k8s.io/cluster-api/util/conditions"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	"github.com/drover-dev/drover/internal/test/artifacttest"
)

// toldWithin is twice the timeout of a repository.
const toldWithin = time.Minute

func TestSilentRepositoryBlocksOnlyItsCharts(t *testing.T) {
	for name, part := range map[string]string{"at all": "", "when an archive is asked for": ".tgz"} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			silent := artifacttest.NewRepository(t, artifacttest.ServerOptions{TLS: true})
			silent.HangAt(part)
			// More than a cluster has slots, and than there are workers, each with its own chart.
			trust := w.trust(silent)
			var proxies []*addonsv1.HelmChartProxy
			for n := range 12 {
				chart := fmt.Sprintf("silent-%02d", n)
				silent.Publish(chart, "1.0.0", artifacttest.Chart(t, chart, "1.0.0", nil))
				p := w.proxy(chart, silent.URL, trust, func(s *spec) { s.ChartName = chart })
				w.create(p)
				proxies = append(proxies, p)
			}
			began := time.Now()
			w.until("it is asked", func() bool { return silent.Count(part) >= 1 && len(w.releases()) == 3*len(proxies) })

			good := artifacttest.NewRepository(t, artifacttest.ServerOptions{TLS: true})
			good.Publish("greeter", "1.0.0", greeter(t, "1.0.0"))
			w.secret("good-ca", corev1.SecretTypeOpaque, map[string][]byte{"ca.crt": good.Access().CA})
			p := w.proxy("good", good.URL, func(s *spec) {
				s.TLSConfig = &addonsv1.TLSConfig{CASecretRef: &corev1.SecretReference{Name: "good-ca"}}
			})
			w.create(p)
			w.awaitReady(p, 3)
			if n := w.countReported(silent.Host); n > 0 {
				t.Errorf("a chart of another repository had to wait until %d of the silent one were given up", n)
			}

			w.until("all charts report the failure", func() bool { return w.countReported(silent.Host) == 3*len(proxies) })
			if took := time.Since(began); took > toldWithin {
				t.Errorf("it took %s until all reported the failure, want at most %s", took, toldWithin)
			}
			silent.Resume()
			for _, p := range proxies {
				w.awaitReady(p, 3)
			}
		})
	}
}

// countReported returns the number of releases that report an unresponsive server.
func (w *world) countReported(host string) int {
	n := 0
	for _, r := range w.releases() {
		ready := conditions.Get(&r, addonsv1.ReleaseReady)
		if ready != nil && strings.Contains(ready.Message, host) {
			n++
		}
	}
	return n
}
