package desired

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/controllers/external"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	"github.com/drover-dev/drover/internal/model/addons/template"
)

// Facts are a cluster and its objects.
type Facts struct {
	Cluster *clusterv1.Cluster
	// ControlPlane and InfraCluster are nil if no template refers to them or the cluster has none.
	ControlPlane, InfraCluster *unstructured.Unstructured
	// Release is the existing release, or nil. Its random values are kept.
	Release *addonsv1.HelmReleaseProxy
	// Kubernetes replaces the version of a cluster that is being upgraded; empty means its own.
	Kubernetes string
}

// MissingError reports that an object that a cluster refers to doesn't exist yet.
type MissingError struct {
	schema.GroupVersionKind

	Name string
}

func (e *MissingError) Error() string {
	return fmt.Sprintf("waiting for %s %q, which a template refers to", e.Kind, e.Name)
}

// kindRecorder records the kind that is read, whose version is resolved on the way.
type kindRecorder struct {
	ctrlclient.Reader

	kind schema.GroupVersionKind
}

func (n *kindRecorder) Get(ctx context.Context, key ctrlclient.ObjectKey, obj ctrlclient.Object, opts ...ctrlclient.GetOption) error {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		n.kind = u.GroupVersionKind()
	}
	return n.Reader.Get(ctx, key, obj, opts...)
}

// Read reads the objects of a cluster that templates use.
func Read(ctx context.Context, reader ctrlclient.Reader, cluster *clusterv1.Cluster, uses template.Uses) (Facts, error) {
	f := Facts{Cluster: cluster}
	var err error
	if uses.ControlPlane.Any {
		if f.ControlPlane, err = read(ctx, reader, cluster.Spec.ControlPlaneRef, cluster.Namespace); err != nil {
			return f, err
		}
	}
	if uses.InfraCluster.Any {
		f.InfraCluster, err = read(ctx, reader, cluster.Spec.InfrastructureRef, cluster.Namespace)
	}
	return f, err
}

func read(ctx context.Context, reader ctrlclient.Reader, ref clusterv1.ContractVersionedObjectReference, namespace string) (*unstructured.Unstructured, error) {
	if !ref.IsDefined() {
		return nil, nil
	}
	n := &kindRecorder{Reader: reader}
	obj, err := external.GetObjectFromContractVersionedRef(ctx, n, ref, namespace)
	if apierrors.IsNotFound(err) {
		return nil, &MissingError{n.kind, ref.Name}
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s %q: %w", ref.Kind, ref.Name, err)
	}
	return obj, nil
}

// data returns what templates see.
func (f Facts) data() (template.Data, error) {
	cluster, err := runtime.DefaultUnstructuredConverter.ToUnstructured(f.Cluster)
	if err != nil {
		return template.Data{}, fmt.Errorf("converting cluster %q: %w", f.Cluster.Name, err)
	}
	cluster["apiVersion"], cluster["kind"] = clusterv1.GroupVersion.String(), "Cluster"
	unstructured.RemoveNestedField(cluster, "metadata", "managedFields")
	d := template.Data{Cluster: cluster, Variables: map[string]any{}}
	if f.ControlPlane != nil {
		d.ControlPlane = f.ControlPlane.Object
	}
	if f.Kubernetes != "" && f.ControlPlane != nil {
		d.ControlPlane = f.ControlPlane.DeepCopy().Object // the object is shared
		if err := unstructured.SetNestedField(d.ControlPlane, f.Kubernetes, "spec", "version"); err != nil {
			return d, fmt.Errorf("setting the version of %s %q: %w", f.ControlPlane.GetKind(), f.ControlPlane.GetName(), err)
		}
	}
	if f.InfraCluster != nil {
		d.InfraCluster = f.InfraCluster.Object
	}
	for _, v := range f.Cluster.Spec.Topology.Variables {
		var value any
		if err := json.Unmarshal(v.Value.Raw, &value); err != nil {
			return d, fmt.Errorf("parsing variable %q of cluster %q: invalid JSON", v.Name, f.Cluster.Name)
		}
		d.Variables[v.Name] = value
	}
	return d, nil
}

// kubernetes returns the desired Kubernetes version of the cluster, because add-ons should be early
// rather than late.
func (f Facts) kubernetes() string {
	if f.Kubernetes != "" {
		return f.Kubernetes
	}
	if v := f.Cluster.Spec.Topology.Version; v != "" {
		return v
	}
	if f.ControlPlane == nil {
		return ""
	}
	for _, place := range []string{"spec", "status"} {
		if v, _, err := unstructured.NestedString(f.ControlPlane.Object, place, "version"); err == nil && v != "" {
			return v
		}
	}
	return ""
}
