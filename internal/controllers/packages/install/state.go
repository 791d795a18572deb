package install

import (
	"errors"
	"reflect"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/model/target"
)

// state returns the state of the package. A blocked package keeps its state.
func state(f *facts, was *packagesv1.PackageStatus) packagesv1.StateEnum {
	blocked := dependencyProblem(f) != nil
	switch {
	case f.deleting():
		return packagesv1.StateUninstalling
	case errors.Is(f.targetErr, target.ErrNamespace):
		return packagesv1.StateUnknown
	case f.targetErr != nil, sourceProblem(f) != nil:
		return keptState(was)
	case f.changed && len(f.missing) > 0, blocked && was.State != packagesv1.StateInstalled:
		return packagesv1.StateInstallingDependencies
	case blocked, f.settled(was):
		return packagesv1.StateInstalled
	case was.CurrentVersion == "":
		return packagesv1.StateInstalling
	default:
		return packagesv1.StateUpdating
	}
}

// keptState returns the previous state, or initializing if it no longer applies.
func keptState(was *packagesv1.PackageStatus) packagesv1.StateEnum {
	if was.State == "" || was.State == packagesv1.StateUnknown {
		return packagesv1.StateInitializing
	}
	return was.State
}

// detail returns the last error or a hint, in the wording that existing tools expect.
func detail(f *facts) string {
	switch {
	case errors.Is(f.targetErr, target.ErrNamespace):
		return f.targetErr.Error()
	case f.targetErr != nil:
		return "getting PackageBundleController: " + f.targetErr.Error()
	case f.changed && len(f.missing) > 0 && dependencyProblem(f) == nil:
		return waitingFor(f.missing)
	}
	for _, find := range []func(*facts) *problem{sourceProblem, dependencyProblem, releaseProblem} {
		if p := find(f); p != nil {
			return p.message
		}
	}
	if f.release == nil || !f.observed() || f.ready() && !f.deleting() {
		return ""
	}
	if c := obstacle(f.release); c != nil {
		return c.Message
	}
	return ""
}

func waitingFor(dependencies []string) string {
	return "Waiting for dependencies: " + strings.Join(dependencies, ", ")
}

// settled reports whether the wanted release is installed and was ready at least once.
func (f *facts) settled(was *packagesv1.PackageStatus) bool {
	if f.changed || releaseProblem(f) != nil || f.release == nil || !f.observed() {
		return false
	}
	if f.ready() {
		return true
	}
	same := was.Source == sourceOf(f.found) && reflect.DeepEqual(was.Spec, f.pack.Spec)
	return same && was.State == packagesv1.StateInstalled && f.release.Status.Attempt == nil
}

// observed reports whether the status of the HelmReleaseProxy is about its current spec.
func (f *facts) observed() bool { return f.release.Status.ObservedGeneration == f.release.Generation }

// ready reports whether the current spec of the HelmReleaseProxy is installed and ready.
func (f *facts) ready() bool {
	return f.observed() && conditions.IsTrue(f.release, clusterv1.ReadyCondition)
}

// obstacle returns the first condition of a HelmReleaseProxy that is not True, nil if there is
// none.
func obstacle(r *addonsv1.HelmReleaseProxy) *metav1.Condition {
	for _, name := range []string{addonsv1.ClusterAvailable, addonsv1.ReleaseReady} {
		if c := conditions.Get(r, name); c != nil && c.Status != metav1.ConditionTrue {
			return c
		}
	}
	return nil
}
