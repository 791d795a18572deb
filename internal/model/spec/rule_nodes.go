package spec

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	kubeletv1 "k8s.io/kubelet/config/v1beta1"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
)

func taintProblems(taints []corev1.Taint, path string) Violations {
	var problems Violations
	seen := map[string]bool{}
	for i, t := range taints {
		at := fmt.Sprintf("%s[%d]", path, i)
		if wrong := validation.IsQualifiedName(t.Key); len(wrong) > 0 {
			problems = append(problems, violation(at+".key", "use a key such as example.com/dedicated", "%q is not a valid key", printable(t.Key))...)
		}
		if wrong := validation.IsValidLabelValue(t.Value); len(wrong) > 0 {
			problems = append(problems, violation(at+".value", "use letters, digits, dashes, dots and underscores", "%q is not a valid value", printable(t.Value))...)
		}
		switch t.Effect {
		case corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute:
		default:
			problems = append(problems, violation(at+".effect", "use NoSchedule, PreferNoSchedule or NoExecute", "%q is not an effect", printable(string(t.Effect)))...)
		}
		if id := t.Key + ":" + string(t.Effect); seen[id] {
			problems = append(problems, violation(at, "keep one of them", "another taint has the same key and effect")...)
		}
		seen[t.Key+":"+string(t.Effect)] = true
	}
	return problems
}

func labelProblems(labels map[string]string, path string) Violations {
	var problems Violations
	for _, key := range sortedKeys(labels) {
		at := path + "[" + printable(key) + "]"
		switch {
		case len(validation.IsQualifiedName(key)) > 0:
			problems = append(problems, violation(at, "use a key such as example.com/team", "is not a valid label key")...)
		case len(validation.IsValidLabelValue(labels[key])) > 0:
			problems = append(problems, violation(at, "use letters, digits, dashes, dots and underscores, 63 at most", "has an invalid label value")...)
		case !allowedOnNodes(key):
			problems = append(problems, violation(at, "use your own domain or node.kubernetes.io", "kubelets are not allowed to set this label")...)
		}
	}
	return problems
}

// nodeLabels are the labels of Kubernetes that a kubelet may set on its own node. With any other it
// does not start.
var nodeLabels = map[string]bool{
	corev1.LabelHostname: true, corev1.LabelArchStable: true, corev1.LabelOSStable: true, corev1.LabelInstanceTypeStable: true,
	corev1.LabelTopologyZone: true, corev1.LabelTopologyRegion: true, corev1.LabelInstanceType: true,
	corev1.LabelFailureDomainBetaZone: true, corev1.LabelFailureDomainBetaRegion: true, "beta.kubernetes.io/os": true, "beta.kubernetes.io/arch": true,
}

// nodeDomains are the domains of Kubernetes whose labels nodes may have: kubelets set the first
// two, Cluster API the others.
var nodeDomains = []string{"node.kubernetes.io", "kubelet.kubernetes.io", "node-role.kubernetes.io", "node-restriction.kubernetes.io"}

func allowedOnNodes(key string) bool {
	domain, _, found := strings.Cut(key, "/")
	if !found || nodeLabels[key] || slices.ContainsFunc(nodeDomains, func(d string) bool { return isSubdomain(domain, d) }) {
		return true
	}
	return !isSubdomain(domain, "kubernetes.io") && !isSubdomain(domain, "k8s.io")
}

func isSubdomain(domain, other string) bool {
	return domain == other || strings.HasSuffix(domain, "."+other)
}

func healthRule(c *anywherev1.Cluster) Violations {
	return healthProblems(c.Spec.MachineHealthCheck, "spec.machineHealthCheck")
}

func healthProblems(h *anywherev1.MachineHealthCheck, path string) Violations {
	if h == nil {
		return nil
	}
	problems := durationProblems(h.NodeStartupTimeout, minStartup, path+".nodeStartupTimeout")
	problems = append(problems, durationProblems(h.UnhealthyMachineTimeout, time.Second, path+".unhealthyMachineTimeout")...)
	if h.MaxUnhealthy != nil && !isShare(*h.MaxUnhealthy) {
		problems = append(problems, violation(path+".maxUnhealthy", `write it as 2 or "40%"`, "is not a number or a percentage")...)
	}
	return problems
}

// minStartup is the minimum of Cluster API, and maxDuration about the maximum that it can count in
// seconds.
const (
	minStartup  = 30 * time.Second
	maxDuration = 10 * 365 * 24 * time.Hour
)

// durationProblems keeps a duration within bounds.
func durationProblems(d *metav1.Duration, least time.Duration, path string) Violations {
	switch {
	case d == nil:
		return nil
	case d.Duration < least:
		return violation(path, "write it as "+least.String()+" or 10m", "must be at least %s", least)
	case d.Duration > maxDuration:
		return violation(path, "use a shorter duration, such as 8760h", "must be at most ten years")
	}
	return nil
}

func isShare(value intstr.IntOrString) bool {
	if value.Type == intstr.Int {
		return value.IntVal >= 0
	}
	digits, percent := strings.CutSuffix(value.StrVal, "%")
	n, err := strconv.ParseUint(digits, 10, 31)
	return err == nil && (!percent || n <= 100)
}

// kubeletProblems parses the configuration of a kubelet as the kubelet would. Users may not set the
// provider ID, which matches a node with its machine.
func kubeletProblems(raw *runtime.RawExtension, path string) Violations {
	if raw == nil || len(raw.Raw) == 0 {
		return nil
	}
	decoder := json.NewDecoder(bytes.NewReader(raw.Raw))
	decoder.UseNumber()
	var settings map[string]any
	if decoder.Decode(&settings) != nil {
		return violation(path, "write the fields of a KubeletConfiguration", "is not an object")
	}
	f := &fitting{prefix: path + "."}
	if settings["providerID"] != nil {
		f.problem("providerID", "remove it: each machine has its own", "can't be set")
	}
	for _, known := range [][2]string{{"apiVersion", kubeletv1.SchemeGroupVersion.String()}, {"kind", "KubeletConfiguration"}} {
		if got, ok := settings[known[0]].(string); ok && got != known[1] {
			f.problem(known[0], "use "+known[1], "%q is not supported", printable(got))
		}
	}
	f.fit(settings, reflect.TypeFor[kubeletv1.KubeletConfiguration](), "")
	return f.problems
}
