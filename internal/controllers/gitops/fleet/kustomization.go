package fleet

import (
	"path"
	"slices"
	"strings"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
)

// How often Flux applies a cluster that didn't change, how soon it tries again after a failure, and
// how long it may take.
const (
	interval      = 10 * time.Minute
	retryInterval = time.Minute
	timeout       = 2 * time.Minute
)

// partLabel is the directory of a cluster that a Kustomization applies, unless it is the cluster
// itself.
const partLabel = "gitops.drover.dev/part"

// placement is where and how the Kustomizations of a cluster are applied.
type placement struct {
	source client.ObjectKey
	entry  entry
	// namespace is that of the Kustomizations: the cluster's, or that of Flux for the management
	// cluster.
	namespace string
	// external means that the cluster has a source of its own.
	external bool
}

// kustomizations returns the Kustomizations of a cluster: its own, and one for each directory that
// is applied later. No two clusters have the same names, because names of clusters have no dots.
func (p placement) kustomizations() []*kustomizev1.Kustomization {
	own := p.kustomization(p.entry.key.Name, p.entry.dir)
	own.Spec.TargetNamespace = p.entry.key.Namespace
	all := []*kustomizev1.Kustomization{own}
	for _, dir := range p.entry.later {
		part := path.Base(dir)
		later := p.kustomization(p.entry.key.Name+"."+part, dir)
		later.Labels[partLabel] = part
		later.Spec.DependsOn = []kustomizev1.DependencyReference{{Name: all[len(all)-1].Name}}
		all = append(all, later)
	}
	return all
}

func (p placement) kustomization(name, dir string) *kustomizev1.Kustomization {
	k := &kustomizev1.Kustomization{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: p.namespace, Name: name, Annotations: sourceAnnotations(p.source),
			Labels: map[string]string{anywherev1.GitClusterLabel: p.entry.key.Name, ManagedByLabel: ManagedBy},
		},
		Spec: kustomizev1.KustomizationSpec{
			Interval:           metav1.Duration{Duration: interval},
			RetryInterval:      &metav1.Duration{Duration: retryInterval},
			Timeout:            &metav1.Duration{Duration: timeout},
			Path:               "./" + dir,
			Prune:              true,
			DeletionPolicy:     kustomizev1.DeletionPolicyOrphan,
			ServiceAccountName: anywherev1.GitAccount,
			SourceRef:          p.sourceRef(),
		},
	}
	k.SetGroupVersionKind(kustomizationKind())
	return k
}

// sourceRef returns the source of the Kustomizations. One that is in their namespace needs no
// permission to refer to other namespaces.
func (p placement) sourceRef() kustomizev1.CrossNamespaceSourceReference {
	if p.external {
		return kustomizev1.CrossNamespaceSourceReference{Kind: sourcev1.ExternalArtifactKind, Name: p.entry.key.Name}
	}
	return kustomizev1.CrossNamespaceSourceReference{Kind: sourcev1.GitRepositoryKind, Namespace: p.source.Namespace, Name: p.source.Name}
}

func sourceAnnotations(repository client.ObjectKey) map[string]string {
	return map[string]string{anywherev1.GitSourceAnnotation: repository.String()}
}

func kustomizationKind() schema.GroupVersionKind {
	return kustomizev1.GroupVersion.WithKind(kustomizev1.KustomizationKind)
}

// SourceOf returns the GitRepository that a Kustomization of Drover is from. Those of earlier
// versions refer to it.
func SourceOf(k *kustomizev1.Kustomization) client.ObjectKey {
	if namespace, name, ok := strings.Cut(k.Annotations[anywherev1.GitSourceAnnotation], "/"); ok {
		return client.ObjectKey{Namespace: namespace, Name: name}
	}
	key := client.ObjectKey{Namespace: k.Spec.SourceRef.Namespace, Name: k.Spec.SourceRef.Name}
	if key.Namespace == "" {
		key.Namespace = k.Namespace
	}
	return key
}

// clusterOf returns the Cluster of a Kustomization of ours.
func clusterOf(k *kustomizev1.Kustomization) client.ObjectKey {
	key := client.ObjectKey{Namespace: k.Spec.TargetNamespace, Name: k.Labels[anywherev1.GitClusterLabel]}
	if key.Namespace == "" {
		key.Namespace = k.Namespace
	}
	return key
}

// isOwn reports whether a Kustomization applies the cluster itself.
func isOwn(k *kustomizev1.Kustomization) bool { return k.Labels[partLabel] == "" }

// isCurrent reports whether a Kustomization is as it should be. Fields that are not ours, such as
// suspend, are not compared.
func isCurrent(is, want *kustomizev1.Kustomization) bool {
	a, b := is.Spec, want.Spec
	for key, value := range want.Labels {
		if is.Labels[key] != value {
			return false
		}
	}
	return is.Annotations[anywherev1.GitSourceAnnotation] == want.Annotations[anywherev1.GitSourceAnnotation] && a.Interval == b.Interval && equalDuration(a.RetryInterval, b.RetryInterval) && equalDuration(a.Timeout, b.Timeout) &&
		a.Path == b.Path && a.Prune == b.Prune && a.DeletionPolicy == b.DeletionPolicy && a.ServiceAccountName == b.ServiceAccountName &&
		a.SourceRef == b.SourceRef && a.TargetNamespace == b.TargetNamespace && slices.Equal(a.DependsOn, b.DependsOn)
}

func equalDuration(a, b *metav1.Duration) bool {
	return a == b || a != nil && b != nil && a.Duration == b.Duration
}
