package etcd

import (
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/model/scheme"
	"github.com/drover-dev/drover/internal/operate/inspect"
)

func TestFindReturnsTheClusterAPICluster(t *testing.T) {
	kinds, err := scheme.New()
	must(t, err)
	ours, plain := &anywherev1.Cluster{}, &clusterv1.Cluster{}
	ours.Namespace, ours.Name = "team-a", "dev"
	plain.Namespace, plain.Name = "team-b", "plain"
	plane := &inspect.Plane{Client: fake.NewClientBuilder().WithScheme(kinds).WithObjects(
		ours, &clusterv1.Cluster{ObjectMeta: meta("dev")}, plain,
	).Build()}
	for _, tt := range []struct{ namespace, name, want string }{
		{"team-a", "dev", "eksa-system/dev"},
		{"", "dev", "eksa-system/dev"},
		{"team-b", "plain", "team-b/plain"},
		{"", "plain", "team-b/plain"},
		{"team-a", "plain", ""},
		{"", "none", ""},
	} {
		got, err := Find(t.Context(), plane, tt.namespace, tt.name)
		if tt.want == "" {
			if err == nil || !strings.Contains(err.Error(), `cluster "`+tt.name+`" not found`) {
				t.Errorf("%+v: got %v, %v", tt, got.ObjectKey, err)
			}
			continue
		}
		if err != nil || got.ObjectKey != keyOf(tt.want) {
			t.Errorf("%+v: got %v, %v", tt, got.ObjectKey, err)
		}
	}
}

func keyOf(name string) client.ObjectKey {
	namespace, name, _ := strings.Cut(name, "/")
	return client.ObjectKey{Namespace: namespace, Name: name}
}
