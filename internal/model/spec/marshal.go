package spec

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
)

// Marshal encodes a Config as a file for Read, with the Cluster first, and without the status and
// other fields that an API server sets.
func Marshal(c *Config) ([]byte, error) {
	objects := c.Objects()
	if c.Cluster != nil {
		objects = slices.Insert(slices.Delete(objects, len(objects)-1, len(objects)), 0, client.Object(c.Cluster))
	}
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	encoder.CompactSeqIndent()
	for _, o := range objects {
		content, err := plain(o.DeepCopyObject().(client.Object))
		if err == nil {
			err = encoder.Encode(content)
		}
		if err != nil {
			return nil, fmt.Errorf("writing %s %q: %w", kindOf(o), o.GetName(), err)
		}
	}
	if err := encoder.Close(); err != nil {
		return nil, fmt.Errorf("writing the file: %w", err)
	}
	return out.Bytes(), nil
}

// plain returns an object as plain maps and lists. It decodes JSON as JSON, because YAML treats
// some characters in it as line breaks.
func plain(o client.Object) (any, error) {
	o.GetObjectKind().SetGroupVersionKind(anywherev1.GroupVersion.WithKind(kindOf(o)))
	strip(o)
	data, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	var content any
	if err := decoder.Decode(&content); err != nil {
		return nil, err
	}
	return numbers(content), nil
}

// numbers converts JSON numbers to Go numbers.
func numbers(value any) any {
	switch value := value.(type) {
	case map[string]any:
		for key := range value {
			value[key] = numbers(value[key])
		}
	case []any:
		for i := range value {
			value[i] = numbers(value[i])
		}
	case json.Number:
		if whole, err := value.Int64(); err == nil {
			return whole
		}
		if broken, err := value.Float64(); err == nil {
			return broken
		}
	}
	return value
}

// strip removes the fields that an API server sets, so that the output of kubectl get can be
// applied.
func strip(o client.Object) {
	o.SetUID("")
	o.SetResourceVersion("")
	o.SetGeneration(0)
	o.SetSelfLink("")
	o.SetCreationTimestamp(metav1.Time{})
	o.SetDeletionTimestamp(nil)
	o.SetDeletionGracePeriodSeconds(nil)
	o.SetManagedFields(nil)
	o.SetOwnerReferences(nil)
	o.SetFinalizers(nil)
	o.SetGenerateName("")
	if annotations := o.GetAnnotations(); annotations != nil {
		delete(annotations, corev1.LastAppliedConfigAnnotation)
		delete(annotations, anywherev1.CreationAnnotation)
		o.SetAnnotations(orNil(annotations))
	}
	o.SetLabels(orNil(o.GetLabels()))
	if c, ok := o.(*anywherev1.Cluster); ok {
		c.Status = anywherev1.ClusterStatus{}
	}
}

// orNil returns nil for an empty map, as reading it from a file would.
func orNil(m map[string]string) map[string]string {
	if len(m) == 0 {
		return nil
	}
	return m
}
