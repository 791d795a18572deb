package quota

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/model/spec"
)

func TestHardTakesTheSmallest(t *testing.T) {
	of := func(hard map[corev1.ResourceName]string) corev1.ResourceQuota {
		q := corev1.ResourceQuota{}
		q.Spec.Hard = corev1.ResourceList{}
		for key, value := range hard {
			q.Spec.Hard[key] = resource.MustParse(value)
		}
		return q
	}
	got := Hard([]corev1.ResourceQuota{of(map[corev1.ResourceName]string{Machines: "10", "pods": "1"}), of(map[corev1.ResourceName]string{Machines: "4", CPUs: "1k"}), {}})
	if diff := cmp.Diff(Amounts{Machines: 4, CPUs: 1000}, got); diff != "" {
		t.Errorf("quotas (-want +got):\n%s", diff)
	}
}

func TestOfCountsTheLargestSize(t *testing.T) {
	c := &spec.Config{Cluster: &anywherev1.Cluster{}}
	c.Cluster.Spec.ControlPlaneConfiguration.Count = 3
	c.Cluster.Spec.WorkerNodeGroupConfigurations = []anywherev1.WorkerNodeGroupConfiguration{
		{Name: "a", Count: ptr.To(1), AutoScalingConfiguration: &anywherev1.AutoScalingConfiguration{MinCount: 1, MaxCount: 4}},
	}
	if diff := cmp.Diff(Amounts{Clusters: 1, Machines: 7, CPUs: 14}, Of(c, func(string) int { return 2 })); diff != "" {
		t.Errorf("amounts (-want +got):\n%s", diff)
	}
}

func TestExceeded(t *testing.T) {
	one := Amounts{Clusters: 1, Machines: 2, CPUs: 4}
	for name, tt := range map[string]struct {
		hard, used, was, is Amounts
		want                string
	}{
		"no quota":                       {Amounts{}, one, nil, one, ""},
		"exactly":                        {Amounts{Clusters: 2, Machines: 4, CPUs: 8}, one, nil, one, ""},
		"every problem":                  {Amounts{Clusters: 1, Machines: 3, CPUs: 7}, one, nil, one, "exceeded quota of the namespace: clusters: 2 of 1, machines: 4 of 3, cpus: 8 of 7"},
		"a change that grows":            {Amounts{Clusters: 1, Machines: 3}, one, one, Amounts{Clusters: 1, Machines: 3, CPUs: 6}, "exceeded quota of the namespace: machines: 5 of 3"},
		"a change that shrinks":          {Amounts{Machines: 1}, one, one, Amounts{Clusters: 1, Machines: 1, CPUs: 2}, ""},
		"a change of the plan":           {Amounts{CPUs: 10}, one, one, Amounts{Clusters: 1, Machines: 2, CPUs: 8}, "exceeded quota of the namespace: cpus: 12 of 10"},
		"an exhausted quota of clusters": {Amounts{Clusters: 1}, one, one, Amounts{Clusters: 1, Machines: 9}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Exceeded(tt.hard, tt.used, tt.was, tt.is); got != tt.want {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
		})
	}
}
