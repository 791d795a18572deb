package bundles

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/registry/bundle"
)

// verdict is what is to be said of a bundle.
type verdict struct {
	state packagesv1.PackageBundleStateEnum
	// name, signature and version are why not.
	name, signature, version error
}

// judge looks at everything, so that all that is wrong is told at once. The state is the first of it, in the order that it has always been
// looked at.
func judge(b *packagesv1.PackageBundle, keys bundle.Keys, droverVersion string) verdict {
	if b.Namespace != packagesv1.Namespace {
		return verdict{state: packagesv1.BundleIgnored}
	}
	v := verdict{state: packagesv1.BundleAvailable}
	_, v.name = bundle.ParseName(b.Name)
	v.signature = bundle.Verify(b, keys)
	v.version = bundle.CheckVersion(b, droverVersion)
	switch {
	case v.version != nil:
		v.state = packagesv1.BundleUpgradeRequired
	case v.name != nil, v.signature != nil:
		v.state = packagesv1.BundleInvalid
	}
	return v
}

// report writes a verdict into the status.
func report(b *packagesv1.PackageBundle, v verdict) {
	b.Status.State = v.state
	b.Status.ObservedGeneration = b.Generation
	if v.state == packagesv1.BundleIgnored {
		meta.RemoveStatusCondition(&b.Status.Conditions, packagesv1.SignatureValid)
		meta.RemoveStatusCondition(&b.Status.Conditions, packagesv1.Compatible)
		set(b, packagesv1.Ready, "Ignored", "bundles are used in namespace "+packagesv1.Namespace+" only")
		return
	}
	set(b, packagesv1.SignatureValid, orElse(v.signature, packagesv1.SignatureBadReason, packagesv1.SignatureGoodReason), text(v.signature))
	set(b, packagesv1.Compatible, orElse(v.version, packagesv1.UpgradeRequiredReason, packagesv1.CompatibleReason), text(v.version))
	reason, message := "Available", ""
	for _, fault := range []struct {
		err    error
		reason string
	}{{v.signature, packagesv1.SignatureBadReason}, {v.name, "NameInvalid"}, {v.version, packagesv1.UpgradeRequiredReason}} {
		if fault.err != nil {
			reason, message = fault.reason, text(fault.err)
		}
	}
	set(b, packagesv1.Ready, reason, message)
}

func orElse(err error, bad, good string) string {
	if err != nil {
		return bad
	}
	return good
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// set writes a condition, which is true if there is nothing to say.
func set(b *packagesv1.PackageBundle, name, reason, message string) {
	c := metav1.Condition{Type: name, Status: metav1.ConditionTrue, Reason: reason, Message: message, ObservedGeneration: b.Generation}
	if message != "" {
		c.Status = metav1.ConditionFalse
	}
	meta.SetStatusCondition(&b.Status.Conditions, c)
}

// used says that a cluster has chosen a bundle, or may be about to.
func used(name string, users []packagesv1.PackageBundleController) bool {
	return slices.ContainsFunc(users, func(u packagesv1.PackageBundleController) bool {
		return u.Spec.ActiveBundle == name || u.Status.LatestBundle == name
	})
}

// superseded says that there are as many newer bundles for the same version of Kubernetes as are to be kept. Names that can't be read are
// in nobody's way, and are not newer than any.
func superseded(name string, all []string, keep int) bool {
	own, err := bundle.ParseName(name)
	if err != nil {
		return false
	}
	newer := 0
	for _, other := range all {
		n, err := bundle.ParseName(other)
		if err == nil && n.Kubernetes() == own.Kubernetes() && n.Compare(own) > 0 {
			newer++
		}
	}
	return newer >= keep
}
