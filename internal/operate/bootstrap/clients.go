package bootstrap

import (
	"context"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"
	"sigs.k8s.io/cluster-api/util/conditions"
)

// sourceClient hides from the upstream mover what does not move, and keeps it from deleting what is
// copied. The mover does not pause: its caller did, in a way that survives a kill.
type sourceClient struct {
	client.Client

	selection    *selection
	dispositions map[types.UID]disposition
	// halfway means that the objects have no status, because they are copies of an interrupted
	// move. It began after the originals were provisioned.
	halfway bool
}

// List omits what does not move. A label makes the mover move objects that nothing else owns.
func (c *sourceClient) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if err := c.Client.List(ctx, list, opts...); err != nil {
		return err
	}
	all, ok := list.(*unstructured.UnstructuredList)
	if !ok {
		return nil
	}
	kept := all.Items[:0]
	for _, u := range all.Items {
		f := c.selection.disposition(&u)
		c.dispositions[u.GetUID()] = f
		switch f {
		case ignored:
			continue
		case moved, copied:
			withLabel(&u, clusterctlv1.ClusterctlMoveHierarchyLabel)
		case linked:
		}
		kept = append(kept, u)
	}
	all.Items = kept
	return nil
}

func withLabel(u *unstructured.Unstructured, label string) {
	labels := u.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[label] = ""
	u.SetLabels(labels)
}

// Get hides from the checks of the mover that objects are paused, and that copies lack a status.
// What it copies it reads as unstructured, so that it arrives paused.
func (c *sourceClient) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if err := c.Client.Get(ctx, key, obj, opts...); err != nil {
		return err
	}
	switch o := obj.(type) {
	case *unstructured.Unstructured:
		// A move that was killed may have begun to delete it. It arrives undeleted.
		unstructured.RemoveNestedField(o.Object, "metadata", "deletionTimestamp")
		unstructured.RemoveNestedField(o.Object, "metadata", "deletionGracePeriodSeconds")
	case *clusterv1.Cluster:
		o.Spec.Paused = nil
		delete(o.Annotations, clusterv1.PausedAnnotation)
		if c.halfway {
			showProvisioned(o)
		}
	case *clusterv1.Machine:
		if c.halfway && !o.Status.NodeRef.IsDefined() {
			o.Status.NodeRef.Name = o.Name
		}
	case *clusterv1.ClusterClass:
		delete(o.Annotations, clusterv1.PausedAnnotation)
	}
	return nil
}

func showProvisioned(c *clusterv1.Cluster) {
	c.Status.Initialization = clusterv1.ClusterInitializationStatus{InfrastructureProvisioned: ptr.To(true), ControlPlaneInitialized: ptr.To(true)}
	conditions.Set(c, metav1.Condition{
		Type: clusterv1.ClusterControlPlaneInitializedCondition, Status: metav1.ConditionTrue, Reason: clusterv1.ClusterControlPlaneInitializedReason,
	})
}

// Patch preserves the annotations of pausing: the mover replaces all annotations before it deletes
// an object.
func (c *sourceClient) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
	if pausing, err := onlyPauses(obj, patch); err != nil || pausing || c.isCopied(obj) {
		return err
	}
	if patch.Type() == types.JSONPatchType {
		patch = client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"annotations":{%q:""}}}`, clusterctlv1.DeleteForMoveAnnotation))
	}
	return c.Client.Patch(ctx, obj, patch, opts...)
}

// Delete ignores what is copied.
func (c *sourceClient) Delete(ctx context.Context, obj client.Object, opts ...client.DeleteOption) error {
	if c.isCopied(obj) {
		return nil
	}
	return c.Client.Delete(ctx, obj, opts...)
}

func (c *sourceClient) isCopied(obj client.Object) bool {
	return c.dispositions[obj.GetUID()] == copied
}

// targetClient keeps the mover from resuming what arrives: resume knows what was paused before.
type targetClient struct{ client.Client }

// Patch implements client.Client.
func (c *targetClient) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
	if pausing, err := onlyPauses(obj, patch); err != nil || pausing {
		return err
	}
	return c.Client.Patch(ctx, obj, patch, opts...)
}

// onlyPauses reports whether a patch changes only whether a Cluster is paused.
func onlyPauses(obj client.Object, patch client.Patch) (bool, error) {
	kind := obj.GetObjectKind().GroupVersionKind().GroupKind()
	if patch.Type() != types.MergePatchType || kind != clusterv1.GroupVersion.WithKind(clusterv1.ClusterKind).GroupKind() {
		return false, nil
	}
	data, err := patch.Data(obj)
	if err != nil {
		return false, err
	}
	var fields map[string]map[string]any
	if json.Unmarshal(data, &fields) != nil || len(fields) != 1 || len(fields["spec"]) != 1 {
		return false, nil //nolint:nilerr // It changes something else.
	}
	_, pausing := fields["spec"]["paused"]
	return pausing, nil
}
