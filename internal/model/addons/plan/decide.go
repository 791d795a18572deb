package plan

import (
	"cmp"
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	"github.com/drover-dev/drover/internal/model/addons/desired"
	"github.com/drover-dev/drover/internal/model/addons/index"
)

// Verb is what to do with the HelmReleaseProxy of a cluster.
type Verb string

// Verbs of a Change.
const (
	Keep   Verb = "keep"
	Create Verb = "create"
	Update Verb = "update"
	// Recreate deletes a release whose name, namespace, tool or chart has changed. A new one is
	// created once it is gone.
	Recreate Verb = "reinstall"
	// Await waits until a release that is being deleted is gone.
	Await Verb = "await"
	// Reject leaves a release alone that belongs to another owner.
	Reject Verb = "reject"
)

// Change is a verb with its object.
type Change struct {
	Verb Verb
	// Object is the release as it should be, for Create and Update.
	Object *addonsv1.HelmReleaseProxy
	// Err is the reason of a Reject.
	Err error
}

// ChartKind is the kind that owns HelmReleaseProxies.
const ChartKind = "HelmChartProxy"

// Decide returns the change that turns existing, nil if the cluster has no release, into want. It
// doesn't modify existing.
func Decide(chart *addonsv1.HelmChartProxy, existing *addonsv1.HelmReleaseProxy, want desired.Release) Change {
	switch {
	case existing == nil:
		return fill(chart, newRelease(chart, want), want, Create)
	case !existing.DeletionTimestamp.IsZero():
		return Change{Verb: Await}
	case InstalledOnce(existing):
		return Change{Verb: Keep}
	case mustRecreate(existing, want):
		return Change{Verb: Recreate}
	}
	c := fill(chart, existing.DeepCopy(), want, Update)
	if c.Verb == Update && equal(existing, c.Object) {
		return Change{Verb: Keep}
	}
	return c
}

// newRelease sets the finalizer at creation, which saves the release's controller a write.
func newRelease(chart *addonsv1.HelmChartProxy, want desired.Release) *addonsv1.HelmReleaseProxy {
	return &addonsv1.HelmReleaseProxy{ObjectMeta: metav1.ObjectMeta{
		Namespace: chart.Namespace, Name: want.Name, Finalizers: []string{addonsv1.HelmReleaseProxyFinalizer},
	}}
}

// InstalledOnce reports whether a release with strategy InstallOnce is installed, and so never
// changes again.
func InstalledOnce(r *addonsv1.HelmReleaseProxy) bool {
	_, installed := r.Annotations[addonsv1.InstalledAnnotation]
	return installed && r.Spec.ReconcileStrategy == addonsv1.InstallOnce
}

// mustRecreate reports whether existing can't be updated to want in place.
func mustRecreate(existing *addonsv1.HelmReleaseProxy, want desired.Release) bool {
	spec := existing.Spec
	return spec.ChartName != want.Spec.ChartName || spec.RepoURL != want.Spec.RepoURL ||
		cmp.Or(spec.ReleaseNamespace, metav1.NamespaceDefault) != want.Spec.ReleaseNamespace ||
		cmp.Or(spec.Tool, addonsv1.Helm) != cmp.Or(want.Spec.Tool, addonsv1.Helm) || renamed(existing, want)
}

// renamed reports whether a release must change its name. Generated names are interchangeable.
func renamed(existing *addonsv1.HelmReleaseProxy, want desired.Release) bool {
	_, generated := existing.Annotations[addonsv1.GeneratedNameAnnotation]
	if existing.Spec.ReleaseName == "" || (generated && want.Generated) {
		return false
	}
	return existing.Spec.ReleaseName != want.Spec.ReleaseName
}

// fill returns the change that gives object the wanted spec, metadata and owner.
func fill(chart *addonsv1.HelmChartProxy, object *addonsv1.HelmReleaseProxy, want desired.Release, verb Verb) Change {
	name := object.Spec.ReleaseName
	object.Spec = *want.Spec.DeepCopy()
	if want.Generated && name != "" {
		object.Spec.ReleaseName = name
	}
	annotate(object, want)
	label(object, chart)
	if err := own(object, chart); err != nil {
		return Change{Verb: Reject, Err: err}
	}
	return Change{Verb: verb, Object: object}
}

func annotate(object *addonsv1.HelmReleaseProxy, want desired.Release) {
	annotations := maps.Clone(object.Annotations)
	if annotations == nil {
		annotations = map[string]string{}
	}
	delete(annotations, addonsv1.GeneratedNameAnnotation)
	delete(annotations, addonsv1.StillValuesAnnotation)
	if want.Generated {
		annotations[addonsv1.GeneratedNameAnnotation] = "true"
	}
	if want.StableDigest != "" {
		annotations[addonsv1.StillValuesAnnotation] = want.StableDigest
	}
	if want.Kubernetes != "" {
		annotations[addonsv1.KubernetesVersionAnnotation] = want.Kubernetes
	}
	object.Annotations = annotations
}

// label sets the labels that releases are listed by. The watch label is inherited, so that the
// manager that reconciles the HelmChartProxy also reconciles its releases.
func label(object *addonsv1.HelmReleaseProxy, chart *addonsv1.HelmChartProxy) {
	labels := maps.Clone(object.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	labels[clusterv1.ClusterNameLabel] = object.Spec.ClusterRef.Name
	labels[addonsv1.HelmChartProxyLabel] = index.ChartLabel(chart.Name)
	if filter, ok := chart.Labels[clusterv1.WatchLabel]; ok {
		labels[clusterv1.WatchLabel] = filter
	}
	object.Labels = labels
}

// own makes the HelmChartProxy the controller of a release. It replaces a HelmChartProxy of the
// same name that existed before.
func own(object *addonsv1.HelmReleaseProxy, chart *addonsv1.HelmChartProxy) error {
	ref := *metav1.NewControllerRef(chart, addonsv1.GroupVersion.WithKind(ChartKind))
	refs := []metav1.OwnerReference{}
	for _, r := range object.OwnerReferences {
		switch {
		case r.Kind == ChartKind && r.Name == chart.Name:
			continue
		case ptr.Deref(r.Controller, false):
			return fmt.Errorf("HelmReleaseProxy %q has the label of this HelmChartProxy but is owned by %s %q; delete one of them", object.Name, r.Kind, r.Name)
		}
		refs = append(refs, r)
	}
	refs = append(refs, ref)
	object.OwnerReferences = refs
	return nil
}

// equal compares every field that Decide sets.
func equal(a, b *addonsv1.HelmReleaseProxy) bool {
	return equality.Semantic.DeepEqual(a.Spec, b.Spec) && equality.Semantic.DeepEqual(a.Labels, b.Labels) &&
		equality.Semantic.DeepEqual(a.Annotations, b.Annotations) && equality.Semantic.DeepEqual(a.OwnerReferences, b.OwnerReferences)
}
