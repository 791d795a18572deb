package lockstep

import (
	"path"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
)

// ParseStage returns the stage that an annotation names.
func ParseStage(text string) (addonsv1.UpgradeStage, bool) {
	stage := addonsv1.UpgradeStage(text)
	return stage, stage == addonsv1.NoStage || slices.Contains(Stages, stage)
}

// StageOf returns the stage of an add-on in an upgrade to a version: what its user has declared,
// else its chart, else what is known of charts with its name. An add-on without any is upgraded
// first if it doesn't support the version. A release that is installed only once follows no
// upgrade.
func StageOf(declared string, r *addonsv1.HelmReleaseProxy, to string) addonsv1.UpgradeStage {
	if r.Spec.ReconcileStrategy == addonsv1.InstallOnce {
		return addonsv1.NoStage
	}
	if stage, ok := ParseStage(declared); ok {
		return stage
	}
	applied := r.Status.Applied
	if applied != nil && applied.UpgradeStage != "" {
		return applied.UpgradeStage
	}
	if stage := StageOfChart(r.Spec.ChartName); stage != "" {
		return stage
	}
	// One that was rendered for the version stays there, although its new chart supports the version.
	if applied != nil && !Supports(applied.Kubernetes, to) || r.Annotations[addonsv1.KubernetesVersionAnnotation] == to {
		return addonsv1.BeforeControlPlane
	}
	return addonsv1.NoStage
}

// networks are charts of Pod networks.
var networks = []string{
	"antrea", "aws-vpc-cni", "calico", "canal", "cilium", "cni", "flannel", "kube-ovn", "kube-router", "multus", "ovn-kubernetes", "tigera-operator", "weave-net",
}

// StageOfChart returns the stage of a well-known chart, or an empty string. Networks and drivers of
// storage support older API servers, and old ones may lack what a new kubelet needs. A cloud
// provider must not be newer than its API server, and new nodes need it.
func StageOfChart(name string) addonsv1.UpgradeStage {
	name = strings.ToLower(path.Base(name))
	words := strings.FieldsFunc(name, func(r rune) bool { return r == '-' || r == '_' || r == '.' })
	has := func(word string) bool { return slices.Contains(words, word) }
	switch {
	case slices.Contains(networks, name), has("csi"):
		return addonsv1.BeforeControlPlane
	case has("ccm"), has("cpi"), has("cpem"), strings.Contains(name, "cloud-controller-manager"), strings.Contains(name, "cloud-provider"):
		return addonsv1.BeforeWorkers
	default:
		return ""
	}
}

// Supports reports whether a range of Kubernetes versions contains a version. A pre-release counts
// as its release. An empty range, or one that can't be read, contains all.
func Supports(constraint, version string) bool {
	if constraint == "" {
		return true
	}
	parsed, err := semver.NewConstraint(constraint)
	is, err2 := semver.NewVersion(version)
	if err != nil || err2 != nil {
		return true
	}
	return parsed.Check(semver.New(is.Major(), is.Minor(), is.Patch(), "", ""))
}

func valid(version string) bool {
	_, err := semver.NewVersion(version)
	return err == nil
}

// newer reports whether a version is newer than another one.
func newer(a, b string) bool {
	x, err := semver.NewVersion(a)
	y, err2 := semver.NewVersion(b)
	return err == nil && err2 == nil && x.GreaterThan(y)
}

// SameMinor reports whether two versions have the same minor version.
func SameMinor(a, b string) bool { return minor(a) == minor(b) }

// minor returns the minor version, such as 1.36.
func minor(version string) string {
	parts := strings.SplitN(strings.TrimPrefix(version, "v"), ".", 3)
	return strings.Join(parts[:min(len(parts), 2)], ".")
}
