package install

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/drover-dev/drover/config"
)

// Annotations that every installed object carries.
const (
	// HashAnnotation is the hash of the object's manifest and of the webhook URL.
	HashAnnotation = "drover.dev/manifest-hash"
	// VersionAnnotation is the version of the Drover that wrote the object.
	VersionAnnotation = "drover.dev/installed-by"
)

// Kinds with special handling.
var (
	namespaces      = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	definitionsKind = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
)

// resources maps the kinds of our manifests; a fixed table saves discovery.
var resources = map[string]schema.GroupVersionResource{
	"Namespace":                      namespaces,
	"CustomResourceDefinition":       definitionsKind,
	"ServiceAccount":                 {Version: "v1", Resource: "serviceaccounts"},
	"Service":                        {Version: "v1", Resource: "services"},
	"Deployment":                     {Group: "apps", Version: "v1", Resource: "deployments"},
	"NetworkPolicy":                  {Group: "networking.k8s.io", Version: "v1", Resource: "networkpolicies"},
	"PodDisruptionBudget":            {Group: "policy", Version: "v1", Resource: "poddisruptionbudgets"},
	"ClusterRole":                    {Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles"},
	"ClusterRoleBinding":             {Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterrolebindings"},
	"Role":                           {Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "roles"},
	"RoleBinding":                    {Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "rolebindings"},
	"MutatingWebhookConfiguration":   {Group: "admissionregistration.k8s.io", Version: "v1", Resource: "mutatingwebhookconfigurations"},
	"ValidatingWebhookConfiguration": {Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingwebhookconfigurations"},
}

// object is a manifest, decoded only as far as needed to decide whether to write it. Decoding all
// CRDs would take longer than the rest of an unchanged start.
type object struct {
	kind            schema.GroupVersionResource
	namespace, name string
	manifest        []byte
	hash            string
	// last marks an object that depends on all others.
	last bool
}

func (o object) String() string { return o.kind.Resource + "/" + o.name }

// objects returns the objects to install, the namespace first.
func (o Options) objects() ([]object, error) {
	var objects []object
	for _, m := range config.CRDs() {
		objects = append(objects, object{kind: definitionsKind, name: m.Name, manifest: m.Data, hash: o.hash(m.Data)})
	}
	small := append([]config.Manifest{config.NamespaceManifest()}, config.RBAC()...)
	for _, m := range append(small, config.Webhooks()...) {
		obj, err := o.identify(m)
		if err != nil {
			return nil, err
		}
		objects = append(objects, obj)
	}
	for _, m := range o.More {
		obj, err := o.identify(m)
		if err != nil {
			return nil, err
		}
		obj.last = true
		objects = append(objects, obj)
	}
	return objects, nil
}

func (o Options) identify(m config.Manifest) (object, error) {
	head := struct {
		Kind     string `json:"kind"`
		Metadata struct {
			Name      string `json:"name"`
			Namespace string `json:"namespace"`
		} `json:"metadata"`
	}{}
	if err := yaml.Unmarshal(m.Data, &head); err != nil {
		return object{}, fmt.Errorf("decoding manifest %q: %w", m.Name, err)
	}
	kind, ok := resources[head.Kind]
	if !ok {
		return object{}, fmt.Errorf("decoding manifest %q: unknown kind %q", m.Name, head.Kind)
	}
	return object{kind: kind, namespace: head.Metadata.Namespace, name: head.Metadata.Name, manifest: m.Data, hash: o.hash(m.Data)}, nil
}

func (o Options) hash(manifest []byte) string {
	h := sha256.New()
	h.Write(manifest)
	h.Write([]byte(o.WebhookURL))
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// render returns the request body for the API server.
func (o Options) render(obj object) ([]byte, error) {
	fields := map[string]any{}
	if err := yaml.Unmarshal(obj.manifest, &fields); err != nil {
		return nil, fmt.Errorf("decoding manifest of %q: %w", obj, err)
	}
	metadata := fields["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	if annotations == nil {
		annotations = map[string]any{}
		metadata["annotations"] = annotations
	}
	annotations[HashAnnotation] = obj.hash
	annotations[VersionAnnotation] = o.Version
	if o.WebhookURL != "" {
		o.retarget(fields)
	}
	return json.Marshal(fields)
}

// retarget replaces references to the webhook Service with URLs, anywhere in the object.
func (o Options) retarget(value any) {
	switch v := value.(type) {
	case map[string]any:
		client, _ := v["clientConfig"].(map[string]any)
		if service, ok := client["service"].(map[string]any); ok {
			path, _ := service["path"].(string)
			client["url"] = strings.TrimSuffix(o.WebhookURL, "/") + path
			delete(client, "service")
		}
		for _, child := range v {
			o.retarget(child)
		}
	case []any:
		for _, child := range v {
			o.retarget(child)
		}
	}
}
