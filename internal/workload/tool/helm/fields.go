package helm

import (
	"context"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/util/csaupgrade"
)

// takeFields makes the fields that were written before server-side apply ours, so that those the chart has dropped since go. Whoever wrote
// the marks of a release installed it: the helm command calls itself helm, the original controller manager, and others may differ.
func takeFields(ctx context.Context, client dynamic.ResourceInterface, live *unstructured.Unstructured) error {
	installers := sets.New[string]()
	for _, entry := range live.GetManagedFields() {
		if entry.Operation == metav1.ManagedFieldsOperationUpdate && entry.Subresource == "" && entry.FieldsV1 != nil &&
			strings.Contains(entry.FieldsV1.GetRawString(), `"f:`+nameAnnotation+`"`) {
			installers.Insert(entry.Manager)
		}
	}
	if len(installers) == 0 {
		return nil
	}
	patch, err := csaupgrade.UpgradeManagedFieldsPatch(live, installers, fieldManager)
	if err != nil || len(patch) == 0 {
		return err
	}
	_, err = client.Patch(ctx, live.GetName(), types.JSONPatchType, patch, metav1.PatchOptions{FieldManager: fieldManager})
	return err
}
