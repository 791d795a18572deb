package install

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/model/target"
	"github.com/drover-dev/drover/internal/registry/bundle"
)

// report turns the facts of this reconcile into status. Each part is left as it was where there is nothing new to say: a package that is
// installed stays so when its bundle is gone.
func (s *scope) report() {
	status := &s.pack.Status
	was := status.DeepCopy()
	status.State, status.Detail = state(&s.facts, was), detail(&s.facts)
	status.ObservedGeneration = s.pack.Generation
	for _, c := range []*metav1.Condition{targetCondition(&s.facts), sourceCondition(&s.facts), dependenciesCondition(&s.facts), installedCondition(&s.facts)} {
		if c != nil {
			c.ObservedGeneration = s.pack.Generation
			meta.SetStatusCondition(&status.Conditions, *c)
		}
	}
	ready := readyCondition(s.pack)
	meta.SetStatusCondition(&status.Conditions, ready)
	if s.target != nil && s.target.Namespace != "" {
		status.Target = s.target
	}
	if s.found.Version == nil || s.deleting() {
		return
	}
	status.UpgradesAvailable = s.upgrades
	status.TargetVersion = targetVersion(&s.facts)
	if s.unsourced == nil {
		status.Source, status.Spec = sourceOf(s.found), *s.pack.Spec.DeepCopy()
	}
	if status.State == packagesv1.StateInstalled && s.settled(was) {
		status.CurrentVersion = s.found.Version.Name
	}
}

func sourceOf(f bundle.Found) packagesv1.PackageOCISource {
	return packagesv1.PackageOCISource{
		Registry: f.Package.Source.Registry, Repository: f.Package.Source.Repository, Version: f.Version.Name, Digest: f.Version.Digest,
	}
}

func targetVersion(f *facts) string {
	if f.found.Latest {
		return f.found.Version.Name + " (" + packagesv1.LatestVersion + ")"
	}
	return f.pack.Spec.PackageVersion
}

// state is how far the package has come. What can't be gone on with does not change it.
func state(f *facts, was *packagesv1.PackageStatus) packagesv1.StateEnum {
	switch {
	case f.deleting():
		return packagesv1.StateUninstalling
	case errors.Is(f.untargeted, target.ErrNamespace):
		return packagesv1.StateUnknown
	case f.untargeted != nil, f.unsourced != nil:
		return stays(was)
	case f.changed && len(f.missing) > 0, f.undependable != nil && was.State != packagesv1.StateInstalled:
		return packagesv1.StateInstallingDependencies
	case f.undependable != nil, f.settled(was):
		return packagesv1.StateInstalled
	case was.CurrentVersion == "":
		return packagesv1.StateInstalling
	default:
		return packagesv1.StateUpdating
	}
}

// stays is the state of before. One that no longer fits, from before the Package was moved for one, counts for nothing.
func stays(was *packagesv1.PackageStatus) packagesv1.StateEnum {
	if was.State == "" || was.State == packagesv1.StateUnknown {
		return packagesv1.StateInitializing
	}
	return was.State
}

// settled says that what is wanted is installed, and was seen ready once since.
func (f *facts) settled(was *packagesv1.PackageStatus) bool {
	if f.changed || f.stuck != nil || f.release == nil || f.release.Status.ObservedGeneration != f.release.Generation {
		return false
	}
	if f.ready() {
		return true
	}
	same := was.Source == sourceOf(f.found) && reflect.DeepEqual(was.Spec, f.pack.Spec)
	return same && was.State == packagesv1.StateInstalled && f.release.Status.Attempt == nil
}

func (f *facts) ready() bool { return conditions.IsTrue(f.release, clusterv1.ReadyCondition) }

// detail is the last error, or what is waited for.
func detail(f *facts) string {
	switch {
	case f.untargeted != nil && !errors.Is(f.untargeted, target.ErrNamespace):
		return "getting PackageBundleController: " + f.untargeted.Error()
	case f.untargeted != nil:
		return f.untargeted.Error()
	case f.unsourced != nil:
		return f.unsourced.message
	case f.undependable != nil:
		return f.undependable.message
	case f.changed && len(f.missing) > 0:
		return "Waiting for dependencies: " + strings.Join(f.missing, ", ")
	case f.stuck != nil:
		return f.stuck.message
	case f.release == nil || !f.told() || f.ready() && !f.deleting():
		return ""
	default:
		_, message := obstacle(f.release)
		return message
	}
}

// told says that the HelmReleaseProxy's status is about what it says now.
func (f *facts) told() bool { return f.release.Status.ObservedGeneration == f.release.Generation }

// obstacle is which condition of a HelmReleaseProxy is not as it should be, and why.
func obstacle(r *addonsv1.HelmReleaseProxy) (*metav1.Condition, string) {
	for _, name := range []string{addonsv1.ClusterAvailable, addonsv1.ReleaseReady} {
		if c := conditions.Get(r, name); c != nil && c.Status != metav1.ConditionTrue {
			return c, c.Message
		}
	}
	return nil, ""
}

func targetCondition(f *facts) *metav1.Condition {
	switch {
	case f.untargeted == nil && f.target == nil:
		return nil
	case f.untargeted == nil:
		message := fmt.Sprintf("release %q on Cluster %q in namespace %q", f.target.Release, f.target.Cluster, f.target.ClusterNamespace)
		return condition(packagesv1.TargetFound, metav1.ConditionTrue, problem{packagesv1.TargetKnownReason, message})
	}
	reason := packagesv1.TargetUnknownReason
	if errors.Is(f.untargeted, target.ErrNamespace) {
		reason = packagesv1.NamespaceInvalidReason
	} else if errors.As(f.untargeted, new(*target.AmbiguousError)) {
		reason = packagesv1.TargetAmbiguousReason
	}
	return condition(packagesv1.TargetFound, metav1.ConditionFalse, problem{reason, f.untargeted.Error()})
}

func sourceCondition(f *facts) *metav1.Condition {
	switch {
	case f.unsourced != nil:
		return condition(packagesv1.SourceFound, metav1.ConditionFalse, *f.unsourced)
	case f.found.Version == nil:
		return nil
	default:
		message := fmt.Sprintf("version %s of bundle %s", f.found.Version.Name, f.bundle.Name)
		return condition(packagesv1.SourceFound, metav1.ConditionTrue, problem{packagesv1.SourceKnownReason, message})
	}
}

func dependenciesCondition(f *facts) *metav1.Condition {
	switch {
	case f.undependable != nil:
		return condition(packagesv1.DependenciesReady, metav1.ConditionFalse, *f.undependable)
	case !f.looked:
		return nil
	case len(f.missing) > 0:
		message := "Waiting for dependencies: " + strings.Join(f.missing, ", ")
		return condition(packagesv1.DependenciesReady, metav1.ConditionFalse, problem{packagesv1.DependenciesPendingReason, message})
	default:
		return condition(packagesv1.DependenciesReady, metav1.ConditionTrue, problem{packagesv1.DependenciesInstalledReason, ""})
	}
}

// installedCondition is nil if nothing is known of the release that was not known before.
func installedCondition(f *facts) *metav1.Condition {
	switch {
	case f.deleting():
		return removalCondition(f)
	case f.stuck != nil:
		return condition(packagesv1.Installed, metav1.ConditionFalse, *f.stuck)
	case f.release == nil:
		return nil
	case f.told() && f.ready() && !f.changed:
		return condition(packagesv1.Installed, metav1.ConditionTrue, problem{packagesv1.InstalledReason, ""})
	}
	reason, message := packagesv1.InstallingReason, ""
	if c, text := obstacle(f.release); c != nil && f.told() {
		message = text
		if c.Reason == addonsv1.InstallOrUpgradeFailedReason {
			reason = packagesv1.InstallFailedReason
		}
	}
	return condition(packagesv1.Installed, metav1.ConditionFalse, problem{reason, message})
}

// removalCondition is not known, rather than false, while the cluster does not answer.
func removalCondition(f *facts) *metav1.Condition {
	why := problem{reason: packagesv1.UninstallingReason, message: "the release is being uninstalled"}
	if f.release == nil {
		return condition(packagesv1.Installed, metav1.ConditionFalse, why)
	}
	status := metav1.ConditionFalse
	if c, text := obstacle(f.release); c != nil && text != "" {
		why.message = text
		if c.Type == addonsv1.ClusterAvailable {
			status = metav1.ConditionUnknown
		}
	}
	return condition(packagesv1.Installed, status, why)
}

// readyCondition is the first of the others that is not true.
func readyCondition(p *packagesv1.Package) metav1.Condition {
	ready := condition(packagesv1.Ready, metav1.ConditionTrue, problem{packagesv1.InstalledReason, ""})
	for _, name := range []string{packagesv1.TargetFound, packagesv1.SourceFound, packagesv1.DependenciesReady, packagesv1.Installed} {
		c := meta.FindStatusCondition(p.Status.Conditions, name)
		if c == nil {
			ready = condition(packagesv1.Ready, metav1.ConditionUnknown, problem{packagesv1.InstallingReason, "nothing is known yet of " + name})
			break
		}
		if c.Status != metav1.ConditionTrue {
			ready = condition(packagesv1.Ready, c.Status, problem{c.Reason, c.Message})
			break
		}
	}
	ready.ObservedGeneration = p.Generation
	return *ready
}

func condition(name string, status metav1.ConditionStatus, why problem) *metav1.Condition {
	return &metav1.Condition{Type: name, Status: status, Reason: why.reason, Message: bound(why.message)}
}
