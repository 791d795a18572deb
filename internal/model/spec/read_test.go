package spec_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/drover-dev/drover/internal/model/spec"
)

const head = "apiVersion: anywhere.eks.amazonaws.com/v1alpha1\nkind: Cluster\nmetadata: {name: a}\n"

func TestReadReportsEveryProblem(t *testing.T) {
	deep := strings.Repeat("[", 20000)
	bomb := "a: &a [x,x,x,x,x,x,x,x,x]\n"
	for i := 'b'; i < 'k'; i++ {
		bomb += fmt.Sprintf("%c: &%c [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*%c,", i-1), 9), ","))
	}
	const correct = " (correct the YAML)"
	const object = " (a document is an object with apiVersion, kind and metadata)"
	for name, test := range map[string]struct {
		text string
		want []string
	}{
		"nothing":     {"", []string{"the file has no Cluster (add an object with apiVersion: anywhere.eks.amazonaws.com/v1alpha1 and kind: Cluster)"}},
		"only dashes": {"---\n---\n", []string{"the file has no Cluster (add an object with apiVersion: anywhere.eks.amazonaws.com/v1alpha1 and kind: Cluster)"}},
		"only others": {"apiVersion: v1\nkind: Secret\nmetadata: {name: x}\n", []string{"the file has no Cluster (add an object with apiVersion: anywhere.eks.amazonaws.com/v1alpha1 and kind: Cluster)"}},
		"text":        {"hello", []string{"document 1: is not an object" + object}},
		"a list":      {"- a\n- b\n", []string{"document 1: is not an object" + object}},
		"NUL":         {"a: \x00", []string{"document 1: invalid YAML: control characters are not allowed" + correct}},
		"not UTF-8":   {"a: \xff\xfe", []string{"document 1: invalid YAML: invalid leading UTF-8 octet" + correct}},
		"an escape": {"kind: \"\\e[31m\"\napiVersion: anywhere.eks.amazonaws.com/v1alpha1\n", []string{
			`document 1: "\x1b[31m" is not supported (use one of Cluster, DockerDatacenterConfig, PacketDatacenterConfig, PacketMachineConfig, FluxConfig, GitOpsConfig, OIDCConfig)`,
		}},
		"broken":         {head + "---\na: [b\n", []string{"document 2: invalid YAML: line 4: did not find expected ',' or ']'" + correct}},
		"too deep":       {deep, []string{"document 1: invalid YAML: exceeded max depth of 10000" + correct}},
		"a bomb":         {bomb, []string{"document 1: invalid YAML: document contains excessive aliasing" + object}},
		"in itself":      {"a: &a {b: *a}\n", []string{"document 1: invalid YAML: anchor 'a' value contains itself" + object}},
		"a key twice":    {head + "metadata: {name: b}\n", []string{"document 1: invalid YAML: unmarshal errors: line 4: mapping key \"metadata\" already defined at line 3" + object}},
		"a key of keys":  {"{[a]: b}", []string{"document 1: invalid YAML: invalid map key: []interface {}{\"a\"}" + object}},
		"not a number":   {"a: .nan\n", []string{"document 1: can't be converted to JSON: a key is not a string, or a number is not finite" + object}},
		"no kind":        {"apiVersion: v1\n", []string{"document 1: has no kind or no apiVersion (set both, such as apiVersion: anywhere.eks.amazonaws.com/v1alpha1 and kind: Cluster)"}},
		"no name":        {"apiVersion: anywhere.eks.amazonaws.com/v1alpha1\nkind: Cluster\n", []string{"document 1: metadata.name: is not set (set a name)"}},
		"a later API":    {strings.Replace(head, "v1alpha1", "v1beta1", 1), []string{"Cluster/a: apiVersion: unknown version v1beta1 (use anywhere.eks.amazonaws.com/v1alpha1)"}},
		"a typing error": {strings.Replace(head, "kind: Cluster", "kind: DockerDataCenterConfg", 1), []string{"DockerDataCenterConfg/a: DockerDataCenterConfg is not supported (did you mean DockerDatacenterConfig?)"}},
		"users of a cloud": {strings.Replace(head, "kind: Cluster", "kind: AWSIamConfig", 1), []string{
			"AWSIamConfig/a: AWSIamConfig is not supported (authenticate users with an OIDCConfig or with certificates)",
		}},
		"two clusters":     {head + "---\n" + strings.Replace(head, "name: a", "name: b", 1), []string{"the file has 2 Clusters: a, b (use one file per cluster)"}},
		"a cluster, twice": {head + "---\n" + head, []string{"Cluster/a: appears more than once (keep one of them)"}},
		"unknown fields": {head + "spec:\n  managementt: true\n  workerNodeGroupConfigurations: [{name: x, replicas: 1}]\nextra: 1\n", []string{
			"extra: unknown field (remove it, or use one of apiVersion, kind, metadata, spec, status)",
			"spec.managementt: unknown field (did you mean management?)",
			"spec.workerNodeGroupConfigurations[0].replicas: unknown field (remove it, or use one of autoscalingConfiguration, count, failureDomains, kubeletConfiguration, " +
				"kubernetesVersion, labels, machineGroupRef, machineHealthCheck, name, taints, upgradeRolloutStrategy)",
		}},
		"wrong types": {head + "spec:\n  kubernetesVersion: [1]\n  management: maybe\n  controlPlaneConfiguration: {count: 1.5, labels: {a: 1, b: [x]}}\n  workerNodeGroupConfigurations: {name: x}\n  gitOpsRef: 5\n", []string{
			"spec.controlPlaneConfiguration.count: is a number but must be an integer within range (write an integer within range)",
			"spec.controlPlaneConfiguration.labels[a]: is a number but must be a string (put it in quotes)",
			"spec.controlPlaneConfiguration.labels[b]: is a list but must be a string (put it in quotes)",
			"spec.gitOpsRef: is a number but must be an object (write an object)",
			"spec.kubernetesVersion: is a list but must be a string (put it in quotes)",
			"spec.management: is a string but must be true or false (write true or false)",
			"spec.workerNodeGroupConfigurations: is an object but must be a list (write a list)",
		}},
		"a count that is too large": {head + "spec: {etcdEncryption: [{providers: [{kms: {name: x, cachesize: 99999999999}}]}]}\n", []string{
			"spec.etcdEncryption[0].providers[0].kms.cachesize: is a number but must be an integer within range (write an integer within range)",
		}},
		"an item of a list": {"apiVersion: v1\nkind: List\nitems: [5]\n", []string{"document 1, item 1: is not an object (an item is an object with apiVersion, kind and metadata)"}},
		"too large":         {strings.Repeat("#", spec.MaxSize+1), []string{"the file has 1048577 bytes; the maximum is 1048576 (remove objects that do not belong to the cluster)"}},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := spec.Read([]byte(test.text))
			var problems spec.Violations
			if !errors.As(err, &problems) || c != nil {
				t.Fatalf("Read gave %v and %v, not violations", c, err)
			}
			if diff := cmp.Diff(test.want, lines(problems)); diff != "" {
				t.Errorf("violations (-want +got):\n%s", diff)
			}
			complete(t, problems)
		})
	}
}

func TestVersionsNeedNoQuotes(t *testing.T) {
	for text, want := range map[string]string{
		"1.30": "1.30", "1.3": "1.3", `"1.30"`: "1.30", "'1.30'": "1.30", "1": "1", "v1.30": "v1.30", "1.30 # now": "1.30",
	} {
		for form, file := range map[string]string{
			"plain":  "spec:\n  workerNodeGroupConfigurations:\n  - kubernetesVersion: " + text + "\n  kubernetesVersion: " + text + "\n",
			"anchor": "spec:\n  workerNodeGroupConfigurations:\n  - kubernetesVersion: &v " + text + "\n  kubernetesVersion: *v\n",
		} {
			c, err := spec.Read([]byte(head + file))
			if err != nil {
				t.Errorf("%s, %s: %v", text, form, err)
				continue
			}
			got := []string{c.Cluster.Spec.KubernetesVersion, *c.Cluster.Spec.WorkerNodeGroupConfigurations[0].KubernetesVersion}
			if diff := cmp.Diff([]string{want, want}, got); diff != "" {
				t.Errorf("%s, %s (-want +got):\n%s", text, form, diff)
			}
		}
	}
}

func TestFileFormats(t *testing.T) {
	want := config(t, base(t, "docker"))
	var objects []any
	for text := range bytes.SplitSeq(base(t, "docker"), []byte("\n---\n")) {
		var object any
		if err := yaml.Unmarshal(text, &object); err != nil {
			t.Fatal(err)
		}
		objects = append(objects, object)
	}
	asJSON := func(value any) string {
		data, err := json.MarshalIndent(value, "", "\t")
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	for name, text := range map[string]string{
		"JSON, one after the other":   asJSON(objects[0]) + asJSON(objects[1]),
		"JSON, with dashes":           asJSON(objects[0]) + "\n---\n" + asJSON(objects[1]),
		"a list, as kubectl prints":   asYAML(t, map[string]any{"apiVersion": "v1", "kind": "List", "items": objects}),
		"a list in JSON":              asJSON(map[string]any{"apiVersion": "v1", "kind": "List", "items": objects}),
		"the other order":             asYAML(t, objects[1]) + "---\n" + asYAML(t, objects[0]),
		"empty documents between":     "---\n" + asYAML(t, objects[1]) + "---\n# nothing\n---\n" + asYAML(t, objects[0]) + "...\n",
		"ends of lines as in Windows": strings.ReplaceAll(string(base(t, "docker")), "\n", "\r\n"),
		"a mark of the byte order":    "\ufeff" + string(base(t, "docker")),
	} {
		c, err := spec.Read([]byte(text))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		spec.Default(c)
		if diff := cmp.Diff(want, c); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestAnchorsAndOldBooleans(t *testing.T) {
	c, err := spec.Read([]byte(head + "spec:\n  management: yes\n  gitOpsRef: &ref {kind: FluxConfig, name: x}\n  identityProviderRefs: [*ref, {<<: *ref, name: y1}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	if !*c.Cluster.Spec.Management || c.Cluster.Spec.IdentityProviderRefs[0].Name != "x" || c.Cluster.Spec.IdentityProviderRefs[1].Kind != "FluxConfig" {
		t.Errorf("read as %+v", c.Cluster.Spec)
	}
}

// Server-side fields are removed, including a status of another API version.
func TestFilesFromAnAPIServer(t *testing.T) {
	c, err := spec.Read([]byte(`apiVersion: anywhere.eks.amazonaws.com/v1alpha1
kind: Cluster
metadata:
  name: a
  uid: 5f4f2a63-19f5-44d0-9b38-2a63b2a13b4e
  resourceVersion: "5"
  generation: 3
  creationTimestamp: 2026-01-02T03:04:05Z
  finalizers: [clusters.anywhere.eks.amazonaws.com/finalizer]
  annotations: {kubectl.kubernetes.io/last-applied-configuration: "{}"}
  managedFields: [{manager: kubectl, operation: Update, apiVersion: x, fieldsType: FieldsV1, fieldsV1: {"f:spec": {}}}]
  labels: {date: 2026-01-02}
status:
  conditions: [{type: Ready, status: "True", severity: Info}]
`))
	if err != nil {
		t.Fatal(err)
	}
	written, err := spec.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	want := "apiVersion: anywhere.eks.amazonaws.com/v1alpha1\nkind: Cluster\nmetadata:\n  labels:\n    date: \"2026-01-02\"\n  name: a\n"
	if diff := cmp.Diff(want, string(written)); diff != "" {
		t.Errorf("file (-want +got):\n%s", diff)
	}
}

func TestReadListsIgnoredObjects(t *testing.T) {
	c, err := spec.Read(append(base(t, "packet"), []byte(`
---
apiVersion: anywhere.eks.amazonaws.com/v1alpha1
kind: Bundles
metadata: {name: bundles-1}
---
apiVersion: anywhere.eks.amazonaws.com/v1alpha1
kind: PacketMachineConfig
metadata: {name: unused}
`)...))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"ConfigMap/notes", "Bundles/bundles-1", "PacketMachineConfig/unused"}, c.Ignored); diff != "" {
		t.Errorf("ignored (-want +got):\n%s", diff)
	}
	if c.Machines["unused"] != nil || len(c.Machines) != 2 || c.OIDC["corp"] == nil || c.Packet == nil || c.Flux == nil {
		t.Errorf("objects of the cluster: %+v", c)
	}
}

func TestFieldNamesMatchInAnyCase(t *testing.T) {
	file := strings.NewReplacer(
		"apiVersion: anywhere", "apiversion: anywhere", "kind: Cluster\nmetadata:\n", "Kind: Cluster\nMetadata:\n", "kubernetesVersion: 1.36", "KubernetesVersion: 1.36",
		"managementCluster:", "managementcluster:", "count: 3", "Count: 3", "metro: da", "Metro: da",
	).Replace(string(base(t, "packet")))
	want, err := spec.Read(base(t, "packet"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := spec.Read([]byte(file))
	if err != nil {
		t.Fatal(err)
	}
	warnings := got.Warnings
	got.Warnings = nil
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("it is read differently:\n%s", diff)
	}
	for _, one := range []string{
		"Kind: read as kind", "Metadata: read as metadata", "spec.KubernetesVersion: read as kubernetesVersion", "spec.controlPlaneConfiguration.Count: read as count",
		"PacketDatacenterConfig/dallas: spec.Metro: read as metro",
	} {
		if !slices.Contains(warnings, one) {
			t.Errorf("no warning %q in %q", one, warnings)
		}
	}
	_, err = spec.Read([]byte(head + "spec: {kubernetesVersion: \"1.36\", KUBERNETESVERSION: \"1.35\"}\n"))
	if err == nil || err.Error() != "spec.KUBERNETESVERSION: is set twice, as kubernetesVersion too (keep kubernetesVersion only)" {
		t.Errorf("a field in two cases: %v", err)
	}
}

func TestViolationsInJSON(t *testing.T) {
	_, problems := spec.Check([]byte(head))
	text, err := json.Marshal(problems[:1])
	if err != nil {
		t.Fatal(err)
	}
	if got := string(text); !strings.HasPrefix(got, `[{"path":"spec.`) || !strings.Contains(got, `","problem":"`) || !strings.Contains(got, `","remedy":"`) {
		t.Errorf("violations are %s", got)
	}
}
