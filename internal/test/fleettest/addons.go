package fleettest

import (
	"encoding/json"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/model/addons/history"
)

// charts are the add-ons of a fleet with their versions, the newest last.
var charts = map[string][]string{"cilium": {"1.18.1", "1.18.2"}, "ingress": {"4.11.3", "4.12.0"}, "monitoring": {"75.1.0"}}

// addOns returns the add-ons of a fleet with their revisions. The rollout of ingress is paused.
func (f Fleet) addOns(clusters int) []client.Object {
	if clusters == 0 {
		return nil
	}
	var out []client.Object
	for chart, versions := range charts {
		a := f.addOn(chart, versions[len(versions)-1])
		for i := range clusters {
			a.Status.MatchingClusters = append(a.Status.MatchingClusters, corev1.ObjectReference{Namespace: anywherev1.SystemNamespace, Name: Name(i)})
		}
		out = append(out, a)
		for i, version := range versions {
			out = append(out, f.revision(f.addOn(chart, version), int64(i+1)))
		}
	}
	return out
}

func (f Fleet) addOn(chart, version string) *addonsv1.HelmChartProxy {
	out := &addonsv1.HelmChartProxy{ObjectMeta: metav1.ObjectMeta{
		Namespace: anywherev1.SystemNamespace, Name: chart, UID: types.UID("addon/" + chart), Generation: 1, CreationTimestamp: metav1.NewTime(f.Now.Add(-2000 * time.Hour).Truncate(time.Second)),
	}}
	out.Spec.ChartName, out.Spec.RepoURL, out.Spec.Version = chart, "https://charts.example.com", version
	out.Status.ObservedGeneration = 1
	out.Status.Conditions = []metav1.Condition{{Type: clusterv1.ReadyCondition, Status: metav1.ConditionTrue, Reason: "Ready", LastTransitionTime: metav1.NewTime(f.Now)}}
	if chart == "ingress" {
		out.Status.Rollout = &addonsv1.RolloutStatus{Revision: "x", Phase: addonsv1.RolloutPaused, Wave: 2, Waves: 3, Updated: 9, Failed: 2}
	}
	return out
}

func (f Fleet) revision(a *addonsv1.HelmChartProxy, number int64) *appsv1.ControllerRevision {
	data, err := json.Marshal(a.Spec)
	if err != nil {
		panic(err) // a spec is plain data
	}
	digest, err := history.Digest(&a.Spec)
	if err != nil {
		panic(err) // a spec is plain data
	}
	return &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: a.Namespace, Name: fmt.Sprintf("%s-%d", a.Name, number), CreationTimestamp: metav1.NewTime(f.Now.Add(-time.Duration(300/number) * time.Hour).Truncate(time.Second)),
			Labels:          map[string]string{addonsv1.HelmChartProxyLabel: a.Name},
			Annotations:     map[string]string{"addons.cluster.x-k8s.io/digest": digest},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(a, addonsv1.GroupVersion.WithKind("HelmChartProxy"))},
		},
		Data: runtime.RawExtension{Raw: data}, Revision: number,
	}
}
