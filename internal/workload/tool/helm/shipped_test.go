package helm

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"

	"helm.sh/helm/v4/pkg/chart/common"
	commonutil "helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
)

// shipped is an object of a chart, as far as it is tested.
type shipped struct {
	Kind     string
	Metadata metav1.ObjectMeta
	Spec     struct {
		Template    *corev1.PodTemplateSpec
		PodSelector *metav1.LabelSelector
		PolicyTypes []string
	}
}

func renderShipped(t *testing.T, dir string) []shipped {
	t.Helper()
	chart, err := loader.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	values, err := commonutil.ToRenderValues(chart, nil, common.ReleaseOptions{Name: "app", Namespace: "default"}, common.DefaultCapabilities.Copy())
	if err != nil {
		t.Fatal(err)
	}
	files, err := engine.Render(chart, values)
	if err != nil {
		t.Fatal(err)
	}
	var out []shipped
	for _, text := range files {
		for _, document := range strings.Split(text, "\n---\n") {
			var o shipped
			if err := yaml.Unmarshal([]byte(document), &o); err != nil {
				t.Fatal(err)
			}
			out = append(out, o)
		}
	}
	return out
}

// TestCatalogRunsRestrictedBehindNetworkPolicies has an API server admit the Pods of all packages
// that ship with Drover, except the Pod network, which configures its node.
func TestCatalogRunsRestrictedBehindNetworkPolicies(t *testing.T) {
	b := newBench(t)
	kube := b.server.Clientset(t)
	restricted := `{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":"restricted"}}}`
	if _, err := kube.CoreV1().Namespaces().Patch(t.Context(), b.namespace, "application/merge-patch+json", []byte(restricted), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	// No controller creates it here.
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "default"}}
	if _, err := kube.CoreV1().ServiceAccounts(b.namespace).Create(t.Context(), account, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	root := filepath.Join("..", "..", "..", "..", "catalog")
	for _, chart := range []string{"hello-eks-anywhere", "notes", "notes-store", "older/hello-eks-anywhere"} {
		objects := renderShipped(t, filepath.Join(root, chart))
		for _, o := range objects {
			if o.Spec.Template == nil {
				continue
			}
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: o.Metadata.Name}, Spec: o.Spec.Template.Spec}
			if _, err := kube.CoreV1().Pods(b.namespace).Create(t.Context(), pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}); err != nil {
				t.Errorf("%s of %s: %v", o.Kind, chart, err)
			}
			if !slices.ContainsFunc(objects, func(policy shipped) bool { return isolates(t, policy, o.Spec.Template.Labels) }) {
				t.Errorf("%s of %s has no NetworkPolicy", o.Kind, chart)
			}
		}
	}
}

// isolates reports whether an object is a NetworkPolicy for both directions that selects Pods.
func isolates(t *testing.T, o shipped, pods map[string]string) bool {
	t.Helper()
	if o.Kind != "NetworkPolicy" || len(o.Spec.PolicyTypes) != 2 {
		return false
	}
	selector, err := metav1.LabelSelectorAsSelector(o.Spec.PodSelector)
	if err != nil {
		t.Fatal(err)
	}
	return selector.Matches(labels.Set(pods))
}
