// Package objects collects what a backup of a management cluster contains, and reads it again: the
// objects that Drover moves between management planes, the Secrets beside them, audit records, and
// the namespaces with what grants and limits access to clusters there.
//
// It is read with the privileges of its caller, the manager, and contains every credential of the
// fleet: whoever calls Collect encrypts the result. Start with Collect.
package objects

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"
	"sigs.k8s.io/controller-runtime/pkg/client"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	droverv1 "github.com/drover-dev/drover/api/drover/v1alpha1"
	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/config"
)

// Set is the content of a backup.
type Set []*unstructured.Unstructured

var (
	definitionKind = schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}
	secretKind     = schema.GroupVersionKind{Version: "v1", Kind: "Secret"}
	configMapKind  = schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	namespaceKind  = schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}
	quotaKind      = schema.GroupVersionKind{Version: "v1", Kind: "ResourceQuota"}
	bindingKind    = schema.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "RoleBinding"}
)

// UserRoleLabel marks the RoleBindings of users of a management cluster.
const UserRoleLabel = "users.drover.dev/role"

// Collect reads the objects of a management cluster.
func Collect(ctx context.Context, c client.Reader) (Set, error) {
	kinds, err := kindsOf(ctx, c)
	if err != nil {
		return nil, err
	}
	var set Set
	for _, kind := range kinds {
		all, err := list(ctx, c, kind)
		if err != nil {
			return nil, err
		}
		set = append(set, all...)
	}
	beside, err := collectBeside(ctx, c, set.namespaces())
	return append(set, beside...), err
}

// kindsOf returns the kinds that Drover and Cluster API store, in the version that is stored.
func kindsOf(ctx context.Context, c client.Reader) ([]schema.GroupVersionKind, error) {
	definitions, err := list(ctx, c, definitionKind, client.HasLabels{clusterctlv1.ClusterctlLabel})
	if err != nil {
		return nil, err
	}
	kinds := []schema.GroupVersionKind{droverv1.GroupVersion.WithKind("AuditRecord"), droverv1.GroupVersion.WithKind("EtcdSnapshotSchedule")}
	for _, u := range definitions {
		group, _, _ := unstructured.NestedString(u.Object, "spec", "group")
		kind, _, _ := unstructured.NestedString(u.Object, "spec", "names", "kind")
		if group == clusterctlv1.GroupVersion.Group || group == droverv1.GroupVersion.Group {
			continue // Inventories of clusterctl, and requests that are answered within minutes.
		}
		kinds = append(kinds, schema.GroupVersionKind{Group: group, Version: storedVersion(u), Kind: kind})
	}
	return kinds, nil
}

func storedVersion(definition *unstructured.Unstructured) string {
	versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
	for _, v := range versions {
		fields, _ := v.(map[string]any)
		if stored, _ := fields["storage"].(bool); stored {
			name, _ := fields["name"].(string)
			return name
		}
	}
	return ""
}

func list(ctx context.Context, c client.Reader, kind schema.GroupVersionKind, opts ...client.ListOption) (Set, error) {
	found := &unstructured.UnstructuredList{}
	found.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	if err := c.List(ctx, found, opts...); err != nil {
		if meta.IsNoMatchError(err) {
			return nil, nil
		}
		return nil, fmt.Errorf("listing %ss: %w", kind.Kind, err)
	}
	out := make(Set, 0, len(found.Items))
	for i := range found.Items {
		u := &found.Items[i]
		u.SetGroupVersionKind(kind)
		out = append(out, u)
	}
	return out, nil
}

// namespaces returns those of the objects, and those that always have credentials. What the manager
// itself needs is created with it.
func (s Set) namespaces() []string {
	all := []string{anywherev1.SystemNamespace, packagesv1.Namespace}
	for _, u := range s {
		if u.GetNamespace() != "" && u.GetNamespace() != config.Namespace {
			all = append(all, u.GetNamespace())
		}
		if u.GetKind() == "PackageBundleController" {
			all = append(all, packagesv1.NamespacePrefix+u.GetName())
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// collectBeside reads what is in the namespaces of the objects, and the namespaces themselves.
func collectBeside(ctx context.Context, c client.Reader, namespaces []string) (Set, error) {
	var set Set
	for _, kind := range []schema.GroupVersionKind{namespaceKind, secretKind, configMapKind, quotaKind, bindingKind} {
		all, err := list(ctx, c, kind)
		if err != nil {
			return nil, err
		}
		for _, u := range all {
			if belongs(u, namespaces) {
				set = append(set, u)
			}
		}
	}
	return set, nil
}

// belongs reports whether a backup contains an object that isn't of Drover's kinds.
func belongs(u *unstructured.Unstructured, namespaces []string) bool {
	switch u.GroupVersionKind().GroupKind() {
	case namespaceKind.GroupKind():
		return slices.Contains(namespaces, u.GetName())
	case secretKind.GroupKind():
		return u.GetNamespace() == config.Namespace && u.GetName() == config.BundleKeySecret ||
			slices.Contains(namespaces, u.GetNamespace()) && !isTemporary(u)
	case bindingKind.GroupKind():
		return slices.Contains(namespaces, u.GetNamespace()) && u.GetLabels()[UserRoleLabel] != ""
	case configMapKind.GroupKind():
		return slices.Contains(namespaces, u.GetNamespace()) && u.GetName() != "kube-root-ca.crt"
	}
	return slices.Contains(namespaces, u.GetNamespace())
}

// isTemporary reports whether a Secret belongs to the API server that it is on.
func isTemporary(u *unstructured.Unstructured) bool {
	kind, _, _ := unstructured.NestedString(u.Object, "type")
	return strings.HasPrefix(kind, "kubernetes.io/service-account") || strings.HasPrefix(kind, "bootstrap.kubernetes.io/") || strings.HasPrefix(kind, "helm.sh/")
}

// Clusters returns the Clusters of Drover's own group.
func (s Set) Clusters() ([]*anywherev1.Cluster, error) {
	var out []*anywherev1.Cluster
	for _, u := range s.Of(anywherev1.GroupVersion.WithKind("Cluster").GroupKind()) {
		c := &anywherev1.Cluster{}
		if err := As(u, c); err != nil {
			return nil, err
		}
		out = append(out, c)
	}
	return out, nil
}

// As converts an object into a typed one.
func As(u *unstructured.Unstructured, into any) error {
	data, err := u.MarshalJSON()
	if err == nil {
		err = json.Unmarshal(data, into)
	}
	if err != nil {
		return fmt.Errorf("reading %s %q: %w", u.GetKind(), client.ObjectKeyFromObject(u), err)
	}
	return nil
}

// Of returns the objects of a kind in any version.
func (s Set) Of(kind schema.GroupKind) Set {
	var out Set
	for _, u := range s {
		if u.GroupVersionKind().GroupKind() == kind {
			out = append(out, u)
		}
	}
	return out
}

// Secret returns the content of a Secret; nil without one.
func (s Set) Secret(key client.ObjectKey) map[string][]byte {
	for _, u := range s.Of(secretKind.GroupKind()) {
		var content struct{ Data map[string][]byte }
		if client.ObjectKeyFromObject(u) == key && As(u, &content) == nil {
			return content.Data
		}
	}
	return nil
}

// Encode returns the set as JSON, one object per line.
func (s Set) Encode() ([]byte, error) {
	var out bytes.Buffer
	for _, u := range s {
		line, err := u.MarshalJSON()
		if err != nil {
			return nil, fmt.Errorf("encoding %s %q: %w", u.GetKind(), client.ObjectKeyFromObject(u), err)
		}
		out.Write(bytes.TrimSpace(line))
		out.WriteByte('\n')
	}
	return out.Bytes(), nil
}

// Decode reads what Encode returned.
func Decode(data []byte) (Set, error) {
	var set Set
	decoder := json.NewDecoder(bytes.NewReader(data))
	for {
		var line json.RawMessage
		err := decoder.Decode(&line)
		if errors.Is(err, io.EOF) {
			return set, nil
		}
		u := &unstructured.Unstructured{}
		if err == nil {
			err = u.UnmarshalJSON(line)
		}
		if err != nil {
			return nil, fmt.Errorf("reading object %d of the backup: %w", len(set)+1, err)
		}
		set = append(set, u)
	}
}
