package template

import (
	"regexp"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/drover-dev/drover/internal/metal/client"
)

// maxPods is the default of the kubelet.
const maxPods = "110"

// cores matches the number of cores in the name of a processor.
var cores = regexp.MustCompile(`(?i)(\d+)[- ]core`)

// memory matches a size whose unit is written as decimal but meant as binary.
var memory = regexp.MustCompile(`(?i)^\s*(\d+(?:\.\d+)?)\s*([MGT])i?B?\s*$`)

// capacity returns the resources of a node on the plan, as far as the plan states them.
func capacity(specs client.PlanSpecs) corev1.ResourceList {
	list := corev1.ResourceList{}
	if n := cpus(specs); n > 0 {
		list[corev1.ResourceCPU] = *resource.NewQuantity(int64(n), resource.DecimalSI)
	}
	if m := memory.FindStringSubmatch(specs.Memory.Total); m != nil {
		if q, err := resource.ParseQuantity(m[1] + strings.ToUpper(m[2]) + "i"); err == nil {
			list[corev1.ResourceMemory] = q
		}
	}
	if len(list) == 0 {
		return nil
	}
	list[corev1.ResourcePods] = resource.MustParse(maxPods)
	return list
}

func cpus(specs client.PlanSpecs) int {
	total := 0
	for _, cpu := range specs.CPUs {
		each := 1
		if m := cores.FindStringSubmatch(cpu.Type); m != nil {
			each, _ = strconv.Atoi(m[1]) // the expression matches digits only
		}
		total += cpu.Count * each
	}
	return total
}

// architecture follows from the last part of the name of a plan: c3.large.arm64, m3.small.x86.
func architecture(plan *client.Plan) string {
	if strings.Contains(plan.Slug, "arm") {
		return "arm64"
	}
	return "amd64"
}
