package bundle

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"strings"

	"go.yaml.in/yaml/v3"

	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
)

const kind = "PackageBundle"

// neverSigned is what a server adds, and a status. The version of the controller has never been signed.
var neverSigned = []string{
	".status", ".metadata.creationTimestamp", ".metadata.generation", ".metadata.managedFields", ".metadata.uid", ".metadata.resourceVersion",
	".spec.minControllerVersion",
}

// keeping is what whoever keeps a bundle in a cluster adds to it. None of it is content: nothing is decided by it, so that taking it away
// before the signature is checked lets nobody slip anything in.
var keeping = []string{
	".metadata.finalizers", ".metadata.ownerReferences", ".metadata.selfLink", ".metadata.deletionTimestamp", ".metadata.deletionGracePeriodSeconds",
}

// Labels may have been signed by others, and be added by whoever keeps the bundle.
const labels = ".metadata.labels"

// Canonical is what a signature is of: all of the bundle but what a server adds, what it excludes itself, and annotations other than those
// that say so; with sorted keys, as YAML with the dashes of lists below the key, and no line ever folded.
func Canonical(b *packagesv1.PackageBundle) ([]byte, error) { return canonical(b) }

// canonicalForms are those that a signature may be of. The first is the one that others check too. The rest leave out what was added since
// the bundle was signed. Each is made when it is asked for, since the first is nearly always the one.
func canonicalForms(b *packagesv1.PackageBundle) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		var last []byte
		for _, without := range [][]string{nil, keeping, append([]string{labels}, keeping...)} {
			form, err := canonical(b, without...)
			if err != nil {
				yield(nil, err)
				return
			}
			if !bytes.Equal(form, last) && !yield(form, nil) {
				return
			}
			last = form
		}
	}
}

func canonical(b *packagesv1.PackageBundle, without ...string) ([]byte, error) {
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
	return encode(content)
}

// plain is the bundle as a server would send it. Clients of the API leave out what kind it is.
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

// drop deletes fields that are not in a list.
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

// keepSignedAnnotations leaves an empty map where there were others only, as has always been signed.
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

func encode(content map[string]any) ([]byte, error) {
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	encoder.CompactSeqIndent()
	if err := encoder.Encode(content); err != nil {
		return nil, fmt.Errorf("writing the signed form: %w", err)
	}
	return out.Bytes(), encoder.Close()
}
