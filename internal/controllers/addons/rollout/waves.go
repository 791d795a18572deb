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

// Waves divides clusters: each wave takes of those that are left, and what no wave takes is the last one. A wave may be empty.
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

// matcher takes a selector that can't be used for one that matches nothing: admission refuses them, and clusters come last then.
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

// Ways to round.
var (
	up   = math.Ceil
	down = math.Floor
)

// size is a number, or a part of all. It is never less than one: a rollout must come to an end.
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
