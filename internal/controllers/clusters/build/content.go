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

// ContentAnnotation has a digest of what an object was made with. API servers fill in defaults, others add to objects: a digest tells what
// was asked for apart from what came of it, also when something is asked for no longer.
const ContentAnnotation = "clusters.drover.dev/content"

// stamp notes what an object is made with. Templates are stamped when their name is chosen.
func stamp(o client.Object) error {
	switch o.(type) {
	case *infrav1.PacketMachineTemplate, *bootstrapv1.KubeadmConfigTemplate:
		return nil
	}
	content := any(o)
	if secret, ok := o.(*corev1.Secret); ok {
		content = slices.Sorted(maps.Keys(secret.Data)) // a digest of a password helps to guess it
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

// digest is a short one: it has to tell apart what one cluster's object was over time.
func digest(content any) (string, error) {
	text, err := json.Marshal(content)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:12]), nil
}

// choice is what a template's name depends on.
type choice struct {
	cluster, group string
	sum            string
	// used is the name of the template that is in use now, if any.
	used string
}

// name is that of the template with this content: the one in use, else the latest that has it, as a crash may have left it, else a new one.
func (c choice) name(existing []client.Object) string {
	last, found := templateNumber(c.used, c.cluster, c.group), 0 // a cache may know who uses a template before it knows the template
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

// slot is where a template goes: the group, the name of the template that is there now, and what is to be in it.
type slot struct {
	group, used string
	spec        any
}

// settle gives a template its name and its stamp. Only spec counts: new labels are no reason to replace machines.
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
