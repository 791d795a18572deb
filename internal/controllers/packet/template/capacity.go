package template

import (
	"regexp"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/drover-dev/drover/internal/metal/client"
)

// maxPods is what a kubelet allows unless told otherwise.
const maxPods = "110"

// cores is how plans tell them: in the name of the processor, of which there may be several.
var cores = regexp.MustCompile(`(?i)(\d+)[- ]core`)

// memory is a number with a unit that is written decimal and meant binary, as memory is.
var memory = regexp.MustCompile(`(?i)^\s*(\d+(?:\.\d+)?)\s*([MGT])i?B?\s*$`)

// capacity is what a node on the plan has. What the plan does not tell is left out.
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
			each, _ = strconv.Atoi(m[1]) // digits, as the expression says
		}
		total += cpu.Count * each
	}
	return total
}

// architecture follows the last part of a plan's name: c3.large.arm64, m3.small.x86.
func architecture(plan *client.Plan) string {
	if strings.Contains(plan.Slug, "arm") {
		return "arm64"
	}
	return "amd64"
}
