package rollout

import (
	"math"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
)

// Waves divides clusters into waves. Each wave takes from those that are left, and the last one
// gets the rest. A wave can be empty.
func Waves(clusters []Cluster, spec []addonsv1.Wave) [][]Cluster {
	var waves [][]Cluster
	left := clusters
	for _, w := range spec {
		var taken, others []Cluster
		limit := size(w.Size, len(clusters), up)
		matches := matcher(w.ClusterSelector)
		for _, c := range left {
			if matches(c) && (w.Size == nil || len(taken) < limit) {
				taken = append(taken, c)
			} else {
				others = append(others, c)
			}
		}
		waves, left = append(waves, taken), others
	}
	if len(left) > 0 {
		waves = append(waves, left)
	}
	return waves
}

// matcher treats an invalid selector, which admission rejects, as one that matches nothing, so that
// its clusters come last.
func matcher(selector *metav1.LabelSelector) func(Cluster) bool {
	if selector == nil {
		return func(Cluster) bool { return true }
	}
	s, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return func(Cluster) bool { return false }
	}
	return func(c Cluster) bool { return s.Matches(labels.Set(c.Labels)) }
}

// Rounding modes.
var (
	up   = math.Ceil
	down = math.Floor
)

// size resolves a number or a percentage of all. It is at least 1, so that a rollout always
// finishes.
func size(v *intstr.IntOrString, all int, round func(float64) float64) int {
	if v == nil {
		return all
	}
	n := v.IntValue()
	if v.Type == intstr.String {
		percent, err := strconv.Atoi(strings.TrimSuffix(v.StrVal, "%"))
		if err != nil {
			return 1
		}
		n = int(round(float64(all) * float64(percent) / 100))
	}
	return max(n, 1)
}
