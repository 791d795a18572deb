package chart

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
)

// takeEvents returns the events since the last call.
func (w *world) takeEvents() []string {
	var out []string
	for len(w.events.Events) > 0 {
		out = append(out, <-w.events.Events)
	}
	return out
}

func TestEventsAreAggregatedAcrossClusters(t *testing.T) {
	w := newWorld(t)
	for i := range 12 {
		w.cluster(fmt.Sprintf("c%02d", i))
	}
	c := w.chart(nil)
	const ten = "c00, c01, c02, c03, c04, c05, c06, c07, c08, c09 and 2 more"
	for _, tc := range []struct {
		name string
		do   func()
		want []string
	}{
		{"created", func() {}, []string{"Normal ReleaseCreated Created HelmReleaseProxies for clusters " + ten}},
		{"nothing to do", func() {}, nil},
		{"changed", func() {
			w.change(func(c *addonsv1.HelmChartProxy) { c.Spec.Version = "2" })
		}, []string{"Normal ReleaseUpdated Updated HelmReleaseProxies for clusters " + ten}},
		{"elsewhere", func() {
			w.change(func(c *addonsv1.HelmChartProxy) { c.Spec.ReleaseNamespace = "cni" })
		}, []string{"Normal ReleaseReinstalling Deleted HelmReleaseProxies to reinstall on clusters " + ten}},
		{"created again", func() {}, []string{"Normal ReleaseCreated Created HelmReleaseProxies for clusters " + ten}},
		{"gone", func() { w.must(w.Delete(t.Context(), c)) }, []string{"Normal ReleaseDeleted Deleted HelmReleaseProxies for clusters " + ten}},
	} {
		tc.do()
		w.run()
		if diff := cmp.Diff(tc.want, w.takeEvents()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.name, diff)
		}
	}
}
