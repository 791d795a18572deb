package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
	"sigs.k8s.io/yaml"
)

func network() options {
	return options{chart: "../../charts/cni", name: "drover-cni", label: "cni=drover"}
}

func TestGeneratedFileMatchesTheChart(t *testing.T) {
	want, err := network().render()
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("../../templates/cni.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("run go generate ./hack/chart (-want +got):\n%s", diff)
	}
}

func TestCorrectFileIsNotRewritten(t *testing.T) {
	o := network()
	o.out = filepath.Join(t.TempDir(), "cni.yaml")
	long := time.Now().Add(-time.Hour).Truncate(time.Second)
	for _, wrong := range []bool{true, false} {
		if wrong {
			if err := os.WriteFile(o.out, []byte("wrong"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Chtimes(o.out, long, long); err != nil {
			t.Fatal(err)
		}
		if err := o.run(); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(o.out)
		if err != nil {
			t.Fatal(err)
		}
		if written := !info.ModTime().Equal(long); written != wrong {
			t.Errorf("it was wrong: %v, and was written: %v", wrong, written)
		}
	}
}

func TestLabeledClustersGetTheObjects(t *testing.T) {
	text, err := network().render()
	if err != nil {
		t.Fatal(err)
	}
	documents := strings.SplitN(text, "\n---\n", 2)
	var set addonsv1.ClusterResourceSet
	var content corev1.ConfigMap
	for i, into := range []any{&set, &content} {
		if err := yaml.UnmarshalStrict([]byte(documents[i]), into); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(map[string]string{"cni": "drover"}, set.Spec.ClusterSelector.MatchLabels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]addonsv1.ResourceRef{{Kind: "ConfigMap", Name: content.Name}}, set.Spec.Resources); diff != "" {
		t.Errorf("resources (-want +got):\n%s", diff)
	}
	var kinds []string
	for document := range strings.SplitSeq(content.Data["cni.yaml"], "\n---\n") {
		var object struct{ Kind string }
		if err := yaml.Unmarshal([]byte(document), &object); err != nil {
			t.Fatal(err)
		}
		kinds = append(kinds, object.Kind)
	}
	if diff := cmp.Diff([]string{"ServiceAccount", "ClusterRole", "ClusterRoleBinding", "DaemonSet"}, kinds); diff != "" {
		t.Errorf("kinds (-want +got):\n%s", diff)
	}
}

func TestLabelIsRequired(t *testing.T) {
	for _, o := range []options{{chart: "../../charts/cni", name: "x", label: "x"}, {chart: "../../charts/cni", label: "a=b"}} {
		if _, err := o.render(); err == nil {
			t.Errorf("%+v is accepted", o)
		}
	}
}
