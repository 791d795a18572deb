package bundle

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"
	"sigs.k8s.io/yaml"

	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
)

const kind = "PackageBundle"

// neverSigned lists the fields that a server adds, the status, and minControllerVersion, which
// signatures don't cover.
var neverSigned = []string{
	".status", ".metadata.creationTimestamp", ".metadata.generation", ".metadata.managedFields", ".metadata.uid", ".metadata.resourceVersion",
	".spec.minControllerVersion",
}

// storageMetadata lists the metadata that a cluster adds to a bundle. No decision depends on it, so
// removing it before verification is safe.
var storageMetadata = []string{
	".metadata.finalizers", ".metadata.ownerReferences", ".metadata.selfLink", ".metadata.deletionTimestamp", ".metadata.deletionGracePeriodSeconds",
}

// labels may be part of the signature, or have been added later.
const labels = ".metadata.labels"

// Canonical returns the bytes that a signature covers: the bundle as YAML, without server-side
// fields, excluded paths, and annotations other than those about exclusions. The YAML is that of
// sigs.k8s.io/yaml, with sorted keys, compact lists, and values with spaces folded at 80 columns.
// Its treatment of control characters is part of the form, including that it rejects some.
func Canonical(b *packagesv1.PackageBundle) ([]byte, error) { return canonical(b, yaml.Marshal) }

// canonicalForms yields the forms that a signature may cover. The first is the standard form; the
// others omit metadata that was added after signing, or are those of an earlier Drover, which
// folded nothing. They are computed lazily, because the first one usually matches.
func canonicalForms(b *packagesv1.PackageBundle) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		var seen [][]byte
		for _, encode := range []func(any) ([]byte, error){yaml.Marshal, unfolded} {
			for _, without := range [][]string{nil, storageMetadata, append([]string{labels}, storageMetadata...)} {
				form, err := canonical(b, encode, without...)
				if err != nil {
					yield(nil, err)
					return
				}
				if slices.ContainsFunc(seen, func(s []byte) bool { return bytes.Equal(s, form) }) {
					continue
				}
				if !yield(form, nil) {
					return
				}
				seen = append(seen, form)
			}
		}
	}
}

func canonical(b *packagesv1.PackageBundle, encode func(any) ([]byte, error), without ...string) ([]byte, error) {
	excludes, err := parseExcludes(b.Annotations[packagesv1.ExcludesAnnotation])
	if err != nil {
		return nil, err
	}
	content, err := plain(b)
	if err != nil {
		return nil, err
	}
	drop(content, neverSigned)
	drop(content, without)
	if content, err = remove(content, excludes); err != nil {
		return nil, err
	}
	keepSignedAnnotations(content)
	form, err := encode(content)
	if err != nil {
		return nil, fmt.Errorf("encoding the signed form of bundle %q: %w", b.Name, err)
	}
	return form, nil
}

// plain converts a bundle to the JSON that a server sends, including the kind, which API clients
// omit.
func plain(b *packagesv1.PackageBundle) (map[string]any, error) {
	named := *b
	if named.APIVersion == "" && named.Kind == "" {
		named.APIVersion, named.Kind = packagesv1.GroupVersion.String(), kind
	}
	text, err := json.Marshal(&named)
	if err != nil {
		return nil, fmt.Errorf("encoding bundle %q: %w", b.Name, err)
	}
	var content map[string]any
	if err := json.Unmarshal(text, &content); err != nil {
		return nil, fmt.Errorf("encoding bundle %q: %w", b.Name, err)
	}
	return content, nil
}

// drop deletes fields by path. Paths through lists are not supported.
func drop(content map[string]any, paths []string) {
	for _, path := range paths {
		fields := strings.Split(path[1:], ".")
		within := content
		for _, field := range fields[:len(fields)-1] {
			within, _ = within[field].(map[string]any)
		}
		delete(within, fields[len(fields)-1])
	}
}

// keepSignedAnnotations removes all annotations that signatures don't cover. It leaves an empty map
// behind, which is part of the signed form.
func keepSignedAnnotations(content map[string]any) {
	metadata, _ := content["metadata"].(map[string]any)
	annotations, ok := metadata["annotations"].(map[string]any)
	if !ok {
		return
	}
	kept := map[string]any{}
	for _, key := range []string{packagesv1.ExcludesAnnotation, packagesv1.IncludesAnnotation} {
		if value, ok := annotations[key]; ok {
			kept[key] = value
		}
	}
	metadata["annotations"] = kept
}

// unfolded encodes YAML for files, and as an earlier Drover signed it.
func unfolded(content any) ([]byte, error) {
	var out bytes.Buffer
	encoder := yamlv3.NewEncoder(&out)
	encoder.SetIndent(2)
	encoder.CompactSeqIndent()
	if err := encoder.Encode(content); err != nil {
		return nil, err
	}
	return out.Bytes(), encoder.Close()
}
