package upgrade

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drover-dev/drover/internal/metal/client"
)

// unable begins the names of cases with a metal service that can't upgrade machines.
const unable = "unable: "

func TestDecide(t *testing.T) {
	const target = "v1.36.3"
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	node := func(version string, ready corev1.ConditionStatus) *corev1.Node {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}
		n.Status.NodeInfo.KubeletVersion = version
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}
		return n
	}
	device := func(version, state string, age time.Duration) *client.KubernetesUpgrade {
		return &client.KubernetesUpgrade{Version: version, State: state, Message: "no space left", ChangedAt: now.Add(-age)}
	}
	old, drained := node("v1.35.4", corev1.ConditionTrue), now.Add(-time.Minute)
	tests := map[string]struct {
		facts   facts
		want    action
		message string
	}{
		"one machine at a time":                        {facts{other: "m2"}, actionWait, "waiting for machine m2"},
		"the first step claims":                        {facts{}, actionClaim, ""},
		"then the node is drained":                     {facts{claimed: true, node: old}, actionDrain, "draining"},
		"Pods that are left are named":                 {facts{claimed: true, node: old, cordoned: drained, pods: []string{"a/b"}}, actionDrain, "a/b"},
		"a denied eviction is explained":               {facts{claimed: true, node: old, cordoned: drained, pods: []string{"a/b"}, blocked: "budget"}, actionDrain, "budget"},
		"without a limit it waits for ever":            {facts{claimed: true, node: old, cordoned: now.Add(-time.Hour), pods: []string{"a/b"}}, actionDrain, ""},
		"the drain timeout ends the wait":              {facts{claimed: true, node: old, cordoned: drained, pods: []string{"a/b"}, drainTimeout: time.Minute}, actionOrder, ""},
		"a drained node is upgraded":                   {facts{claimed: true, node: old, cordoned: drained}, actionOrder, target},
		"the only node is not drained":                 {facts{claimed: true, node: old, alone: true, pods: []string{"a/b"}}, actionOrder, ""},
		"without a node nothing starts":                {facts{claimed: true}, actionWait, "waiting for the node"},
		"metal works":                                  {facts{claimed: true, device: device(target, client.UpgradePending, 0)}, actionWait, "installing"},
		"an older order ends first":                    {facts{claimed: true, node: old, device: device("v1.35.5", client.UpgradePending, 0)}, actionWait, "v1.35.5"},
		"an older result does not count":               {facts{claimed: true, node: old, cordoned: drained, device: device("v1.35.4", client.UpgradeSucceeded, time.Hour)}, actionOrder, ""},
		"a failure is shown":                           {facts{claimed: true, node: old, cordoned: drained, device: device(target, client.UpgradeFailed, time.Second)}, actionWait, "no space left"},
		"a failure is tried again":                     {facts{claimed: true, node: old, cordoned: drained, device: device(target, client.UpgradeFailed, time.Minute)}, actionOrder, ""},
		"the node has to report the version":           {facts{claimed: true, node: old, device: device(target, client.UpgradeSucceeded, 0)}, actionWait, "instead of v1.35.4"},
		"the node has to be ready":                     {facts{claimed: true, node: node(target, corev1.ConditionFalse), device: device(target, client.UpgradeSucceeded, 0)}, actionWait, "to be ready"},
		"an upgraded node can't be read":               {facts{claimed: true, device: device(target, client.UpgradeSucceeded, 0)}, actionWait, "waiting for the node"},
		unable + "nothing starts":                      {facts{node: old}, actionWait, "can't upgrade machines in place"},
		unable + "no machine waits for another":        {facts{other: "m2"}, actionWait, "can't upgrade machines in place"},
		unable + "a claimed machine is released":       {facts{claimed: true, node: old}, actionRelease, "can't upgrade machines in place"},
		unable + "a drained node is released":          {facts{claimed: true, node: old, cordoned: drained}, actionRelease, ""},
		unable + "a failed upgrade is not tried again": {facts{claimed: true, node: old, cordoned: drained, device: device(target, client.UpgradeFailed, time.Minute)}, actionRelease, ""},
		unable + "what was upgraded before is done":    {facts{claimed: true, node: node(target, corev1.ConditionTrue), device: device(target, client.UpgradeSucceeded, 0)}, actionDone, ""},
		"then it is done":                              {facts{claimed: true, node: node(target, corev1.ConditionTrue), device: device(target, client.UpgradeSucceeded, 0)}, actionDone, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			tt.facts.target, tt.facts.now, tt.facts.upgradable = target, now, !strings.HasPrefix(name, unable)
			if got := decide(tt.facts); got.action != tt.want || !strings.Contains(got.message, tt.message) {
				t.Errorf("got %+v, want %s %q", got, tt.want, tt.message)
			}
		})
	}
}

func TestIsEvictable(t *testing.T) {
	controller := true
	for name, tt := range map[string]struct {
		pod  corev1.Pod
		want bool
	}{
		"a Pod":           {corev1.Pod{}, true},
		"a static Pod":    {corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{corev1.MirrorPodAnnotationKey: "x"}}}, false},
		"of a DaemonSet":  {corev1.Pod{ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{Kind: "DaemonSet", Controller: &controller}}}}, false},
		"of a ReplicaSet": {corev1.Pod{ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{Kind: "ReplicaSet", Controller: &controller}}}}, true},
		"that has ended":  {corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodSucceeded}}, false},
	} {
		if got := isEvictable(&tt.pod); got != tt.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}

func TestAcceptsPodsOf(t *testing.T) {
	taint := func(key string, effect corev1.TaintEffect) corev1.Taint {
		return corev1.Taint{Key: key, Effect: effect}
	}
	node := func(name string, taints ...corev1.Taint) *corev1.Node {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.NodeSpec{Taints: taints}}
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		return n
	}
	cordoned, down := node("b"), node("b")
	cordoned.Spec.Unschedulable = true
	down.Status.Conditions[0].Status = corev1.ConditionUnknown
	controlPlane := taint("node-role.kubernetes.io/control-plane", corev1.TaintEffectNoSchedule)
	for name, tt := range map[string]struct {
		other, node *corev1.Node
		want        bool
	}{
		"another worker":                       {node("b"), node("a"), true},
		"the node itself":                      {node("a"), node("a"), false},
		"a cordoned node":                      {cordoned, node("a"), false},
		"a node that is not ready":             {down, node("a"), false},
		"a control plane for Pods of a worker": {node("b", controlPlane), node("a"), false},
		"a worker for Pods of a control plane": {node("b"), node("a", controlPlane), true},
		"a node with the same taint":           {node("b", controlPlane), node("a", controlPlane), true},
		"a node that prefers other Pods":       {node("b", taint("x", corev1.TaintEffectPreferNoSchedule)), node("a"), true},
	} {
		if got := acceptsPodsOf(tt.other, tt.node); got != tt.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}
