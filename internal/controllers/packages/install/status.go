package install

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/base/text"
	"github.com/drover-dev/drover/internal/registry/bundle"
)

// report writes the facts to the status. Facts that are unknown keep the previous values: an
// installed package stays installed when its bundle is deleted.
func report(p *packagesv1.Package, f *facts) {
	status := &p.Status
	was := status.DeepCopy()
	status.State, status.Detail = state(f, was), detail(f)
	status.ObservedGeneration = p.Generation
	for _, c := range []*metav1.Condition{targetCondition(f), sourceCondition(f), dependenciesCondition(f), installedCondition(f)} {
		set(p, c)
	}
	set(p, readyCondition(status.Conditions))
	if f.target != nil && f.target.Namespace != "" {
		status.Target = f.target
	}
	if f.found.Version == nil || f.deleting() {
		return
	}
	status.UpgradesAvailable = f.upgrades
	status.TargetVersion = targetVersion(f)
	if sourceProblem(f) == nil {
		status.Source, status.Spec = sourceOf(f.found), *p.Spec.DeepCopy()
	}
	if status.State == packagesv1.StateInstalled && f.settled(was) {
		status.CurrentVersion = f.found.Version.Name
	}
}

// reportAbandoned records that the release was left on an unreachable cluster.
func reportAbandoned(p *packagesv1.Package) {
	t := p.Status.Target
	set(p, condition(packagesv1.Installed, metav1.ConditionFalse, problem{
		packagesv1.AbandonedReason, fmt.Sprintf("Cluster %q was unreachable; release %q was abandoned", t.Cluster, t.Release),
	}))
}

// set sets a condition. A nil condition keeps the previous one.
func set(p *packagesv1.Package, c *metav1.Condition) {
	if c == nil {
		return
	}
	c.ObservedGeneration = p.Generation
	meta.SetStatusCondition(&p.Status.Conditions, *c)
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

func targetCondition(f *facts) *metav1.Condition {
	if p := targetProblem(f); p != nil {
		return condition(packagesv1.TargetFound, metav1.ConditionFalse, *p)
	}
	if f.target == nil {
		return nil
	}
	message := fmt.Sprintf("Release %q on Cluster %q in namespace %q", f.target.Release, f.target.Cluster, f.target.ClusterNamespace)
	return condition(packagesv1.TargetFound, metav1.ConditionTrue, problem{packagesv1.TargetKnownReason, message})
}

func sourceCondition(f *facts) *metav1.Condition {
	if p := sourceProblem(f); p != nil {
		return condition(packagesv1.SourceFound, metav1.ConditionFalse, *p)
	}
	if f.found.Version == nil {
		return nil
	}
	message := fmt.Sprintf("Version %s of bundle %s", f.found.Version.Name, f.bundle.Name)
	return condition(packagesv1.SourceFound, metav1.ConditionTrue, problem{packagesv1.SourceKnownReason, message})
}

func dependenciesCondition(f *facts) *metav1.Condition {
	if p := dependencyProblem(f); p != nil {
		return condition(packagesv1.DependenciesReady, metav1.ConditionFalse, *p)
	}
	switch {
	case !f.dependenciesKnown:
		return nil
	case len(f.missing) > 0:
		return condition(packagesv1.DependenciesReady, metav1.ConditionFalse, problem{packagesv1.DependenciesPendingReason, waitingFor(f.missing)})
	default:
		return condition(packagesv1.DependenciesReady, metav1.ConditionTrue, problem{packagesv1.DependenciesInstalledReason, ""})
	}
}

// installedCondition returns nil if nothing new is known about the release.
func installedCondition(f *facts) *metav1.Condition {
	if f.deleting() {
		return removalCondition(f)
	}
	if p := releaseProblem(f); p != nil {
		return condition(packagesv1.Installed, metav1.ConditionFalse, *p)
	}
	switch {
	case f.release == nil:
		return nil
	case f.ready() && !f.changed:
		return condition(packagesv1.Installed, metav1.ConditionTrue, problem{packagesv1.InstalledReason, ""})
	}
	why := problem{reason: packagesv1.InstallingReason}
	if c := obstacle(f.release); c != nil && f.observed() {
		why.message = c.Message
		if c.Reason == addonsv1.InstallOrUpgradeFailedReason {
			why.reason = packagesv1.InstallFailedReason
		}
	}
	return condition(packagesv1.Installed, metav1.ConditionFalse, why)
}

// removalCondition is Unknown while the cluster is unreachable.
func removalCondition(f *facts) *metav1.Condition {
	why := problem{reason: packagesv1.UninstallingReason, message: "Uninstalling the release"}
	if f.release == nil {
		return condition(packagesv1.Installed, metav1.ConditionFalse, why)
	}
	status := metav1.ConditionFalse
	if c := obstacle(f.release); c != nil && c.Message != "" {
		why.message = c.Message
		if c.Type == addonsv1.ClusterAvailable {
			status = metav1.ConditionUnknown
		}
	}
	return condition(packagesv1.Installed, status, why)
}

// readyCondition returns the first of the other conditions that is not True.
func readyCondition(conditions []metav1.Condition) *metav1.Condition {
	for _, name := range []string{packagesv1.TargetFound, packagesv1.SourceFound, packagesv1.DependenciesReady, packagesv1.Installed} {
		c := meta.FindStatusCondition(conditions, name)
		if c == nil {
			return condition(packagesv1.Ready, metav1.ConditionUnknown, problem{packagesv1.InstallingReason, "Waiting for condition " + name})
		}
		if c.Status != metav1.ConditionTrue {
			return condition(packagesv1.Ready, c.Status, problem{c.Reason, c.Message})
		}
	}
	return condition(packagesv1.Ready, metav1.ConditionTrue, problem{packagesv1.InstalledReason, ""})
}

func condition(name string, status metav1.ConditionStatus, why problem) *metav1.Condition {
	return &metav1.Condition{Type: name, Status: status, Reason: why.reason, Message: text.Truncate(why.message)}
}
