// Package inplace decides which changes of a machine can be made without replacing it: a newer
// version of Kubernetes, and nothing else. It is pure; the manager, its admission and commands
// share it. Start with Refusals.
package inplace

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/util/version"

	"github.com/drover-dev/drover/internal/base/text"
)

// Annotation marks machines that are upgraded in place and never replaced by a rollout. Control
// planes and MachineDeployments have it in the template of their machines.
const Annotation = "clusters.drover.dev/upgrade-strategy"

// Strategy is the value of Annotation.
const Strategy = "InPlace"

// Parts of the messages about a machine in the condition Updating of its Machine.
const (
	// StepPrefix is followed by the version and the step.
	StepPrefix = "upgrading to "
	// WaitingForMachine begins the step of a machine whose turn has not come.
	WaitingForMachine = "waiting for machine "
)

// Wanted reports whether a machine with these annotations is upgraded in place.
func Wanted(annotations map[string]string) bool { return annotations[Annotation] == Strategy }

// Machine is what a machine is made from.
type Machine struct {
	// Version is its version of Kubernetes, such as v1.36.3.
	Version string
	// Bootstrap and Infrastructure are the specs of its KubeadmConfig and its PacketMachine, or parts
	// of them.
	Bootstrap, Infrastructure map[string]any
}

// maxFields is the number of fields that a reason names.
const maxFields = 4

// Refusals returns why a machine can't become another one in place, or nothing.
func Refusals(current, desired Machine) []string {
	var out []string
	if reason := VersionRefusal(current.Version, desired.Version); reason != "" {
		out = append(out, reason)
	}
	for _, part := range []struct {
		what             string
		current, desired map[string]any
	}{
		{"kubeadm configuration", current.Bootstrap, desired.Bootstrap},
		{"machine", current.Infrastructure, desired.Infrastructure},
	} {
		if fields := Differences(part.current, part.desired); len(fields) > 0 {
			out = append(out, fmt.Sprintf("its %s changes (%s)", part.what, text.FirstN(fields, maxFields)))
		}
	}
	return out
}

// VersionRefusal returns why a version can't follow another one in place, or "". Kubeadm upgrades
// by one minor version at most, and never downgrades.
func VersionRefusal(current, desired string) string {
	if current == desired {
		return ""
	}
	from, err := version.ParseSemantic(current)
	if err != nil {
		return fmt.Sprintf("its Kubernetes version %q is unknown", current)
	}
	to, err := version.ParseSemantic(desired)
	switch {
	case err != nil:
		return fmt.Sprintf("Kubernetes version %q is unknown", desired)
	case to.LessThan(from):
		return fmt.Sprintf("Kubernetes %s is older than its version %s", desired, current)
	case to.Major() != from.Major() || to.Minor() > from.Minor()+1:
		return fmt.Sprintf("Kubernetes %s is more than one minor version newer than its version %s", desired, current)
	}
	return ""
}

// Differences returns the paths of the fields that differ, sorted, at most two levels deep. Unset
// fields equal empty ones.
func Differences(current, desired map[string]any) []string {
	var out []string
	for _, key := range keys(current, desired) {
		a, b := current[key], desired[key]
		if same(a, b) {
			continue
		}
		first, one := a.(map[string]any)
		second, two := b.(map[string]any)
		if !one && a != nil || !two && b != nil {
			out = append(out, key)
			continue
		}
		for _, below := range keys(first, second) {
			if !same(first[below], second[below]) {
				out = append(out, key+"."+below)
			}
		}
	}
	return out
}

func keys(a, b map[string]any) []string {
	all := maps.Clone(a)
	if all == nil {
		all = map[string]any{}
	}
	maps.Copy(all, b)
	return slices.Sorted(maps.Keys(all))
}

// same compares values that were decoded from JSON.
func same(a, b any) bool {
	return reflect.DeepEqual(a, b) || empty(a) && empty(b)
}

func empty(value any) bool {
	switch value := value.(type) {
	case nil:
		return true
	case map[string]any:
		for _, v := range value {
			if !empty(v) {
				return false
			}
		}
		return true
	case []any:
		return len(value) == 0
	}
	return false
}
