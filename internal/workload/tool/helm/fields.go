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

// adoptFields takes over the fields that were written before server-side apply, so that those the
// chart has dropped since are removed. The field managers that wrote the release annotations are
// the installers: helm, the manager of the original add-on provider, or another.
func adoptFields(ctx context.Context, client dynamic.ResourceInterface, live *unstructured.Unstructured) error {
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
