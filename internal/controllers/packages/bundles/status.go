package bundles

import (
	"cmp"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/base/text"
	"github.com/drover-dev/drover/internal/registry/bundle"
)

// facts are the results of verifying a bundle.
type facts struct {
	// ignored is set for bundles in other namespaces, which are not verified.
	ignored bool
	// name, signature and version are the reasons why the bundle can't be used.
	name, signature, version error
}

// verify makes all checks, so that the status reports every problem at once.
func verify(b *packagesv1.PackageBundle, keys bundle.Keys, droverVersion string) facts {
	if b.Namespace != packagesv1.Namespace {
		return facts{ignored: true}
	}
	var f facts
	_, f.name = bundle.ParseName(b.Name)
	f.signature = bundle.Verify(b, keys)
	f.version = bundle.CheckVersion(b, droverVersion)
	return f
}

// state returns the state of a bundle. A required upgrade takes precedence, because an older Drover
// may not be able to verify the bundle.
func (f facts) state() packagesv1.PackageBundleStateEnum {
	switch {
	case f.ignored:
		return packagesv1.BundleIgnored
	case f.version != nil:
		return packagesv1.BundleUpgradeRequired
	case f.name != nil, f.signature != nil:
		return packagesv1.BundleInvalid
	default:
		return packagesv1.BundleAvailable
	}
}

// conditions returns the conditions of a bundle.
func (f facts) conditions() []metav1.Condition {
	if f.ignored {
		return []metav1.Condition{failed(packagesv1.Ready, "Ignored", "Bundles are used only in namespace "+packagesv1.Namespace)}
	}
	signature := succeeded(packagesv1.SignatureValid, packagesv1.SignatureGoodReason)
	compatible := succeeded(packagesv1.Compatible, packagesv1.CompatibleReason)
	ready := succeeded(packagesv1.Ready, "Available")
	if f.signature != nil {
		signature = failed(packagesv1.SignatureValid, packagesv1.SignatureBadReason, "Verifying the signature failed: "+f.signature.Error())
		ready = failed(packagesv1.Ready, signature.Reason, signature.Message)
	}
	if f.name != nil {
		ready = failed(packagesv1.Ready, "NameInvalid", f.name.Error())
	}
	if f.version != nil {
		compatible = failed(packagesv1.Compatible, packagesv1.UpgradeRequiredReason, "Upgrade Drover: "+f.version.Error())
		ready = failed(packagesv1.Ready, compatible.Reason, compatible.Message)
	}
	return []metav1.Condition{signature, compatible, ready}
}

func succeeded(kind, reason string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: reason}
}

func failed(kind, reason, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: metav1.ConditionFalse, Reason: reason, Message: text.Truncate(message)}
}

// report writes the facts to the status.
func report(b *packagesv1.PackageBundle, f facts) {
	b.Status.State = f.state()
	b.Status.ObservedGeneration = b.Generation
	if f.ignored {
		meta.RemoveStatusCondition(&b.Status.Conditions, packagesv1.SignatureValid)
		meta.RemoveStatusCondition(&b.Status.Conditions, packagesv1.Compatible)
	}
	for _, c := range f.conditions() {
		c.ObservedGeneration = b.Generation
		meta.SetStatusCondition(&b.Status.Conditions, c)
	}
}

// readyMessage returns the message of Ready, or the state if there is none.
func readyMessage(b *packagesv1.PackageBundle) string {
	message := ""
	if c := meta.FindStatusCondition(b.Status.Conditions, packagesv1.Ready); c != nil {
		message = c.Message
	}
	return cmp.Or(message, string(b.Status.State))
}
