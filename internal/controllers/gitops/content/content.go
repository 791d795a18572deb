// Package content reads the objects of a GitChange: the spec that is written into a repository. The
// webhook and the controller read it with the same function, so that what was checked is what is
// written.
//
// It never decides who may write the objects. Start with Read.
package content

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	droverv1 "github.com/drover-dev/drover/api/drover/v1alpha1"
	"github.com/drover-dev/drover/internal/model/spec"
)

// Read returns the spec in a GitChange, without defaults. The error is spec.Violations with every
// object and field that doesn't belong there. A FluxConfig may be left out because it exists
// already: it is read, so that the files of the cluster have it.
func Read(ctx context.Context, reader client.Reader, change *droverv1.GitChange) (*spec.Config, error) {
	if problems := checkObjects(change); len(problems) > 0 {
		return nil, problems
	}
	config, err := spec.Read(join(change.Spec.Objects))
	if err != nil {
		return nil, err
	}
	if problems := checkConfig(config, change); len(problems) > 0 {
		return nil, problems
	}
	return config, complete(ctx, reader, config)
}

// join returns the objects as a stream of JSON.
func join(objects []runtime.RawExtension) []byte {
	var all bytes.Buffer
	for _, o := range objects {
		all.Write(o.Raw)
		all.WriteByte('\n')
	}
	return all.Bytes()
}

// checkObjects reports a status, which package spec ignores in files of other tools.
func checkObjects(change *droverv1.GitChange) spec.Violations {
	var problems spec.Violations
	for i, raw := range change.Spec.Objects {
		at, o := fmt.Sprintf("spec.objects[%d]", i), struct {
			Status any `json:"status"`
		}{}
		if err := json.Unmarshal(raw.Raw, &o); err != nil {
			problems = append(problems, spec.Violation{Path: at, Problem: "is not an object", Remedy: "set apiVersion, kind and metadata"})
		} else if o.Status != nil {
			problems = append(problems, spec.Violation{Path: at + ".status", Problem: "is not part of a spec", Remedy: "remove it"})
		}
	}
	return problems
}

// checkConfig reports objects that are not those of the cluster.
func checkConfig(config *spec.Config, change *droverv1.GitChange) spec.Violations {
	var problems spec.Violations
	if config.Cluster.Name != change.Spec.Cluster {
		problems = append(problems, spec.Violation{Path: "spec.objects", Problem: "have another Cluster than spec.cluster", Remedy: "use one name"})
	}
	if ref := config.Cluster.Spec.GitOpsRef; ref == nil || ref.Name != change.Spec.FluxConfig {
		problems = append(problems, spec.Violation{
			Path: "spec.objects", Problem: "have a Cluster that doesn't reference spec.fluxConfig", Remedy: "set its spec.gitOpsRef",
		})
	}
	for _, o := range config.Objects() {
		if o.GetNamespace() != change.Namespace {
			problems = append(problems, spec.Violation{
				Path:    o.GetObjectKind().GroupVersionKind().Kind + "/" + o.GetName() + ": metadata.namespace",
				Problem: "is not the namespace of the GitChange", Remedy: "use " + change.Namespace,
			})
		}
	}
	for _, name := range config.Ignored {
		problems = append(problems, spec.Violation{
			Path: "spec.objects", Problem: "contain " + name + ", which the Cluster doesn't reference", Remedy: "commit it yourself",
		})
	}
	return problems
}

// pruneAnnotation, with the value "disabled", keeps Flux from deleting an object whose file is
// removed.
const pruneAnnotation = "kustomize.toolkit.fluxcd.io/prune"

// complete adds the FluxConfig or GitOpsConfig that the Cluster references, if it exists. Package
// spec reports one that doesn't. Flux never deletes it, because other clusters may use it.
func complete(ctx context.Context, reader client.Reader, config *spec.Config) error {
	ref := config.Cluster.Spec.GitOpsRef
	key := client.ObjectKey{Namespace: config.Cluster.Namespace, Name: ref.Name}
	meta := metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, Annotations: map[string]string{pruneAnnotation: "disabled"}}
	switch {
	case ref.Kind == anywherev1.FluxConfigKind && config.Flux == nil:
		found := &anywherev1.FluxConfig{}
		if err := reader.Get(ctx, key, found); err != nil {
			return client.IgnoreNotFound(err)
		}
		config.Flux = &anywherev1.FluxConfig{ObjectMeta: meta, Spec: found.Spec}
	case ref.Kind == anywherev1.GitOpsConfigKind && config.GitOps == nil:
		found := &anywherev1.GitOpsConfig{}
		if err := reader.Get(ctx, key, found); err != nil {
			return client.IgnoreNotFound(err)
		}
		config.GitOps = &anywherev1.GitOpsConfig{ObjectMeta: meta, Spec: found.Spec}
	}
	return nil
}
