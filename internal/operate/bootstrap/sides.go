package management

import (
	"context"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"
)

// sourceClient shows upstream's mover what is to go and nothing else, and has it leave alone what is to stay. Pausing is not its business:
// whoever called it has done that, in a way that survives being killed.
type sourceClient struct {
	client.Client

	selection *selection
	fates     map[types.UID]fate
}

// List leaves out what stays. The mover finds out by labels what it must take although nothing that goes owns it.
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
		f := c.selection.fate(&u)
		c.fates[u.GetUID()] = f
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

// Get hides from the mover's checks that things are paused. What it copies, it reads without a type, and that is paused on the other side too.
func (c *sourceClient) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if err := c.Client.Get(ctx, key, obj, opts...); err != nil {
		return err
	}
	switch o := obj.(type) {
	case *unstructured.Unstructured:
		// It may have been deleted by a move that was killed before it was gone. On the other side it lives.
		unstructured.RemoveNestedField(o.Object, "metadata", "deletionTimestamp")
		unstructured.RemoveNestedField(o.Object, "metadata", "deletionGracePeriodSeconds")
	case *clusterv1.Cluster:
		o.Spec.Paused = nil
		delete(o.Annotations, clusterv1.PausedAnnotation)
	case *clusterv1.ClusterClass:
		delete(o.Annotations, clusterv1.PausedAnnotation)
	}
	return nil
}

// Patch keeps what says that an object is paused: the mover would replace all annotations just before it deletes an object.
func (c *sourceClient) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
	if pausing, err := onlyPauses(obj, patch); err != nil || pausing || c.stays(obj) {
		return err
	}
	if patch.Type() == types.JSONPatchType {
		patch = client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"annotations":{%q:""}}}`, clusterctlv1.DeleteForMoveAnnotation))
	}
	return c.Client.Patch(ctx, obj, patch, opts...)
}

// Delete leaves alone what others need.
func (c *sourceClient) Delete(ctx context.Context, obj client.Object, opts ...client.DeleteOption) error {
	if c.stays(obj) {
		return nil
	}
	return c.Client.Delete(ctx, obj, opts...)
}

func (c *sourceClient) stays(obj client.Object) bool { return c.fates[obj.GetUID()] == copied }

// targetClient keeps the mover from resuming what arrives: somebody else knows what was paused before.
type targetClient struct{ client.Client }

// Patch implements client.Client.
func (c *targetClient) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
	if pausing, err := onlyPauses(obj, patch); err != nil || pausing {
		return err
	}
	return c.Client.Patch(ctx, obj, patch, opts...)
}

// onlyPauses says that a patch changes nothing but whether a Cluster is paused.
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
		return false, nil //nolint:nilerr // it changes something else
	}
	_, pausing := fields["spec"]["paused"]
	return pausing, nil
}
