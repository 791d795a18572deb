package release

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drover-dev/drover/internal/workload"
)

func TestOwnerOfObject(t *testing.T) {
	for name, tt := range map[string]struct {
		labels, annotations map[string]string
		want                string
		record              bool
	}{
		"a record of Helm": {labels: map[string]string{"owner": "helm", "name": "web"}, want: "here/web", record: true},
		"an object of a Helm release": {
			annotations: map[string]string{"meta.helm.sh/release-name": "web", "meta.helm.sh/release-namespace": "there"}, want: "there/web",
		},
		"a record of another tool": {
			labels: map[string]string{"addons.cluster.x-k8s.io/owner": "drover", "addons.cluster.x-k8s.io/name": "web"}, want: "here/web", record: true,
		},
		"an object of another tool": {
			labels:      map[string]string{"addons.cluster.x-k8s.io/owner": "drover"},
			annotations: map[string]string{"addons.cluster.x-k8s.io/name": "web", "addons.cluster.x-k8s.io/namespace": "there"}, want: "there/web",
		},
		"no owner": {want: "/"},
	} {
		object := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "here", Name: "x", Labels: tt.labels, Annotations: tt.annotations}}
		if got, namespace, record := releaseOf(workload.Event{Object: object}); namespace+"/"+got != tt.want || record != tt.record {
			t.Errorf("%s: belongs to %s/%s, a record: %t; want %s, %t", name, namespace, got, record, tt.want, tt.record)
		}
	}
}
