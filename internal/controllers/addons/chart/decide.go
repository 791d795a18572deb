package chart

import (
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

// verb is what to do with the release of a cluster.
type verb string

const (
	keep   verb = "keep"
	create verb = "create"
	update verb = "update"
	// reinstall removes a release whose name, place or origin has changed. When it is gone, a new one is made.
	reinstall verb = "reinstall"
	// await waits until a release that is on its way out is gone.
	await verb = "await"
	// refuse leaves alone what belongs to somebody else.
	refuse verb = "refuse"
)

// move is a verb and what it needs.
type move struct {
	verb verb
	// object is the release as it should be, for create and update.
	object *addonsv1.HelmReleaseProxy
	// why is for refuse.
	why error
}

// decide says what to do on a cluster that has the release there, nil if none, and should have the one wanted.
func decide(chart *addonsv1.HelmChartProxy, there *addonsv1.HelmReleaseProxy, want desired.Release) move {
	switch {
	case there == nil:
		return filled(chart, newRelease(chart, want), want, create)
	case !there.DeletionTimestamp.IsZero():
		return move{verb: await}
	case installedOnce(there):
		return move{verb: keep}
	case mustReinstall(there, want):
		return move{verb: reinstall}
	}
	m := filled(chart, there.DeepCopy(), want, update)
	if m.verb == update && same(there, m.object) {
		return move{verb: keep}
	}
	return m
}

// newRelease has the finalizer from the start: its controller would put it on first of all, with a write more.
func newRelease(chart *addonsv1.HelmChartProxy, want desired.Release) *addonsv1.HelmReleaseProxy {
	return &addonsv1.HelmReleaseProxy{ObjectMeta: metav1.ObjectMeta{
		Namespace: chart.Namespace, Name: want.Name, Finalizers: []string{addonsv1.HelmReleaseProxyFinalizer},
	}}
}

// installedOnce says that a release was installed and is left alone for good.
func installedOnce(there *addonsv1.HelmReleaseProxy) bool {
	_, installed := there.Annotations[addonsv1.InstalledAnnotation]
	return installed && there.Spec.ReconcileStrategy == addonsv1.InstallOnce
}

// mustReinstall says that a release can't become the wanted one.
func mustReinstall(there *addonsv1.HelmReleaseProxy, want desired.Release) bool {
	was := there.Spec
	return was.ChartName != want.Spec.ChartName || was.RepoURL != want.Spec.RepoURL ||
		or(was.ReleaseNamespace, metav1.NamespaceDefault) != want.Spec.ReleaseNamespace ||
		or(was.Tool, addonsv1.Helm) != or(want.Spec.Tool, addonsv1.Helm) || renamed(there, want)
}

// renamed says that a release that has a name should have another. One name that was made up is as good as another.
func renamed(there *addonsv1.HelmReleaseProxy, want desired.Release) bool {
	_, generated := there.Annotations[addonsv1.GeneratedNameAnnotation]
	if there.Spec.ReleaseName == "" || (generated && want.Generated) {
		return false
	}
	return there.Spec.ReleaseName != want.Spec.ReleaseName
}

func or[T comparable](value, otherwise T) T {
	var zero T
	if value == zero {
		return otherwise
	}
	return value
}

// filled is the move that makes object as wanted.
func filled(chart *addonsv1.HelmChartProxy, object *addonsv1.HelmReleaseProxy, want desired.Release, v verb) move {
	was := object.Spec
	object.Spec = *want.Spec.DeepCopy()
	if want.Generated && was.ReleaseName != "" {
		object.Spec.ReleaseName = was.ReleaseName
	}
	annotate(object, want)
	label(object, chart)
	if err := own(object, chart); err != nil {
		return move{verb: refuse, why: err}
	}
	return move{verb: v, object: object}
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
	if want.Still != "" {
		annotations[addonsv1.StillValuesAnnotation] = want.Still
	}
	object.Annotations = annotations
}

// label makes the release be found, also by a manager that looks at some objects only.
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

// own makes the HelmChartProxy the owner, also in place of one of the same name that was there before it.
func own(object *addonsv1.HelmReleaseProxy, chart *addonsv1.HelmChartProxy) error {
	ref := *metav1.NewControllerRef(chart, addonsv1.GroupVersion.WithKind(chartKind))
	refs := []metav1.OwnerReference{}
	for _, r := range object.OwnerReferences {
		switch {
		case r.Kind == chartKind && r.Name == chart.Name:
			continue
		case ptr.Deref(r.Controller, false):
			return fmt.Errorf("HelmReleaseProxy %q has the label of this HelmChartProxy but belongs to %s %q: remove one of the two", object.Name, r.Kind, r.Name)
		}
		refs = append(refs, r)
	}
	refs = append(refs, ref)
	object.OwnerReferences = refs
	return nil
}

// same compares everything that is written.
func same(a, b *addonsv1.HelmReleaseProxy) bool {
	return equality.Semantic.DeepEqual(a.Spec, b.Spec) && equality.Semantic.DeepEqual(a.Labels, b.Labels) &&
		equality.Semantic.DeepEqual(a.Annotations, b.Annotations) && equality.Semantic.DeepEqual(a.OwnerReferences, b.OwnerReferences)
}
