package build

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"

	infrav1 "github.com/drover-dev/drover/api/infrastructure/v1beta1"
)

// ContentAnnotation holds a digest of the intent of an object. API servers set defaults and others
// add fields, but the digest detects changes of the intent, including removed fields.
const ContentAnnotation = "clusters.drover.dev/content"

// ConfigAnnotation holds a digest of the kubeadm configuration of a control plane that is upgraded
// in place.
const ConfigAnnotation = "clusters.drover.dev/kubeadm-content"

// stamp sets the digest of an object. Templates are stamped when their name is chosen.
func stamp(o client.Object) error {
	switch o.(type) {
	case *infrav1.PacketMachineTemplate, *bootstrapv1.KubeadmConfigTemplate:
		return nil
	}
	content := any(o)
	if secret, ok := o.(*corev1.Secret); ok {
		content = slices.Sorted(maps.Keys(secret.Data)) // A digest of a password would help to guess it.
	}
	sum, err := digest(content)
	if err != nil {
		return fmt.Errorf("digesting %T %q: %w", o, o.GetName(), err)
	}
	annotate(o, sum)
	return nil
}

func annotate(o client.Object, sum string) {
	annotations := map[string]string{ContentAnnotation: sum}
	for k, v := range o.GetAnnotations() {
		annotations[k] = v
	}
	o.SetAnnotations(annotations)
}

// digest returns a short digest, which only has to distinguish versions of one object.
func digest(content any) (string, error) {
	text, err := json.Marshal(content)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:12]), nil
}

// choice determines the name of a template.
type choice struct {
	cluster, group string
	sum            string
	// used is the name of the current template, if any.
	used string
}

// name returns the name of the template with this content: the current one, else the latest one,
// which a crash may have left, else a new one.
func (c choice) name(existing []client.Object) string {
	last, found := templateNumber(c.used, c.cluster, c.group), 0 // A cache may contain the user of a template before the template.
	for _, o := range existing {
		n := templateNumber(o.GetName(), c.cluster, c.group)
		last = max(last, n)
		if n == 0 || o.GetAnnotations()[ContentAnnotation] != c.sum {
			continue
		}
		if o.GetName() == c.used {
			return c.used
		}
		found = max(found, n)
	}
	if found == 0 {
		found = last + 1
	}
	return templateName(c.cluster, c.group, found)
}

// slot is the place of a template: the group, the name of the current template, and the content.
type slot struct {
	group, used string
	spec        any
}

// settle sets the name and the digest of a template. Only the spec counts: new labels do not
// replace machines.
func settle[T client.Object](b *builder, s slot, template T, existing []T) error {
	sum, err := digest(s.spec)
	if err != nil {
		return fmt.Errorf("digesting a template of %q: %w", s.group, err)
	}
	objects := make([]client.Object, 0, len(existing))
	for _, o := range existing {
		objects = append(objects, o)
	}
	name := choice{cluster: b.cluster.Name, group: s.group, sum: sum, used: s.used}.name(objects)
	meta := b.meta(name)
	template.SetNamespace(meta.Namespace)
	template.SetName(meta.Name)
	template.SetLabels(meta.Labels)
	annotate(template, sum)
	return nil
}
