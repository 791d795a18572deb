package manager_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/cmd/clusterctl/client/yamlprocessor"
	utilyaml "sigs.k8s.io/cluster-api/util/yaml"

	infrav1 "github.com/drover-dev/drover/api/infrastructure/v1beta1"
	"github.com/drover-dev/drover/internal/test/packettest"
)

// variables are the variables of users of the upstream provider.
var variables = map[string]string{
	"CLUSTER_NAME": "t", "KUBERNETES_VERSION": "v1.36.3", "CONTROL_PLANE_MACHINE_COUNT": "3", "WORKER_MACHINE_COUNT": "2",
	"PROJECT_ID": "p", "METRO": "da", "CONTROLPLANE_NODE_TYPE": "c3.small.x86", "WORKER_NODE_TYPE": "c3.small.x86", "SSH_KEY": "mine",
}

// optional are the variables that templates may have defaults for.
var optional = map[string]bool{
	"POD_CIDR": true, "SERVICE_CIDR": true, "NODE_OS": true,
	"KUBE_VIP_IMAGE": true, "KUBE_VIP_VERSION": true, "KUBERNETES_REPOSITORY": true,
}

func TestEveryTemplateIsAcceptedWithUpstreamVariables(t *testing.T) {
	server, _ := ready(t)
	c := client.NewDryRunClient(newClient(t, server.Config))
	files, err := filepath.Glob("../../templates/cluster*.yaml")
	if err != nil || len(files) != 5 {
		t.Fatalf("templates: %v, %v", files, err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			ns := server.Namespace(t)
			for _, obj := range render(t, file, variables) {
				obj.SetNamespace(ns)
				if err := c.Create(t.Context(), &obj); err != nil {
					t.Errorf("%s %q: %v", obj.GetKind(), obj.GetName(), err)
				}
			}
		})
	}
}

// render renders a template as clusterctl does.
func render(t *testing.T, file string, values map[string]string) []unstructured.Unstructured {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	processor := yamlprocessor.NewSimpleProcessor()
	known, err := processor.GetVariables(raw)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range known {
		if variables[name] == "" && !optional[name] {
			t.Errorf("variable %s is not one that people have", name)
		}
	}
	out, err := processor.Process(raw, func(name string) (string, error) {
		if value, ok := values[name]; ok {
			return value, nil
		}
		return "", errors.New("not set")
	})
	if err != nil {
		t.Fatal(err)
	}
	objects, err := utilyaml.ToUnstructured(out)
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

func TestTemplatesNeedNoNetworkWithPreloadedImages(t *testing.T) {
	files, _ := filepath.Glob("../../templates/cluster*.yaml")
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		text := string(raw)
		guard, fetch := strings.Index(text, "command -v kubeadm"), strings.Index(text, "apt-get")
		if fetch >= 0 && (guard < 0 || guard > fetch) {
			t.Errorf("%s fetches packages without looking first", file)
		}
		if strings.Contains(text, "kubernetes-archive-keyring") || strings.Contains(text, "ubuntu_20_04") || strings.Contains(text, "apiKey") {
			t.Errorf("%s has a mistake of the former templates", file)
		}
	}
}

// samples creates valid objects.
type samples struct{ namespace string }

func (s samples) cluster(name string, change func(*infrav1.PacketClusterSpec)) *infrav1.PacketCluster {
	obj := &infrav1.PacketCluster{Spec: infrav1.PacketClusterSpec{ProjectID: "p", Metro: "da"}}
	obj.Name, obj.Namespace = name, s.namespace
	change(&obj.Spec)
	return obj
}

func (s samples) machine(name string, change func(*infrav1.PacketMachineSpec)) *infrav1.PacketMachine {
	obj := &infrav1.PacketMachine{Spec: infrav1.PacketMachineSpec{OS: "o", MachineType: "m"}}
	obj.Name, obj.Namespace = name, s.namespace
	change(&obj.Spec)
	return obj
}

func (s samples) machineTemplate(name string, change func(*infrav1.PacketMachineSpec)) *infrav1.PacketMachineTemplate {
	obj := &infrav1.PacketMachineTemplate{}
	obj.Name, obj.Namespace = name, s.namespace
	obj.Spec.Template.Spec = s.machine("", change).Spec
	return obj
}

func (s samples) clusterTemplate(name string, change func(*infrav1.PacketClusterSpec)) *infrav1.PacketClusterTemplate {
	obj := &infrav1.PacketClusterTemplate{}
	obj.Name, obj.Namespace = name, s.namespace
	obj.Spec.Template.Spec = s.cluster("", change).Spec
	return obj
}

func keepCluster(*infrav1.PacketClusterSpec) {}
func keepMachine(*infrav1.PacketMachineSpec) {}

// packetRule is an attempt and a part of the expected error; empty means success.
type packetRule struct {
	name string
	make func(name string) client.Object
	// change is applied to the object of make; nil if make itself must be rejected.
	change func(client.Object)
	want   string
}

func packetRules(s samples) []packetRule {
	return []packetRule{
		{name: "a cluster without a location", want: "spec.metro: Required", make: func(n string) client.Object {
			return s.cluster(n, func(p *infrav1.PacketClusterSpec) { p.Metro = "" })
		}},
		{name: "a cluster with two locations", want: "set either metro or facility", make: func(n string) client.Object {
			return s.cluster(n, func(p *infrav1.PacketClusterSpec) { p.Facility = "da11" })
		}},
		{name: "control planes where the address can't follow", want: "can't move to", make: func(n string) client.Object {
			return s.cluster(n, func(p *infrav1.PacketClusterSpec) {
				p.FailureDomains = []infrav1.PacketFailureDomain{{Metro: "sv", ControlPlane: ptr.To(true)}}
			})
		}},
		{name: "an unknown VIP manager", want: "supported values", make: func(n string) client.Object {
			return s.cluster(n, func(p *infrav1.PacketClusterSpec) { p.VIPManager = "MAGIC" })
		}},
		{
			name: "another project", want: "spec.projectID: Invalid value: \"q\": field is immutable",
			make:   func(n string) client.Object { return s.cluster(n, keepCluster) },
			change: func(o client.Object) { o.(*infrav1.PacketCluster).Spec.ProjectID = "q" },
		},
		{
			name: "another VIP manager", want: "spec.vipManager: Invalid value: \"KUBE_VIP\": field is immutable",
			make:   func(n string) client.Object { return s.cluster(n, keepCluster) },
			change: func(o client.Object) { o.(*infrav1.PacketCluster).Spec.VIPManager = infrav1.VIPManagerKubeVIP },
		},
		{name: "a machine with two locations", want: "set either metro or facility", make: func(n string) client.Object {
			return s.machine(n, func(p *infrav1.PacketMachineSpec) { p.Metro, p.Facility = "da", "da11" })
		}},
		{name: "a boot script for an image", want: "requires os to be custom_ipxe", make: func(n string) client.Object {
			return s.machine(n, func(p *infrav1.PacketMachineSpec) { p.IPXEUrl = "http://x" })
		}},
		{
			name: "another machine type", want: "is immutable except for providerID",
			make:   func(n string) client.Object { return s.machine(n, keepMachine) },
			change: func(o client.Object) { o.(*infrav1.PacketMachine).Spec.MachineType = "other" },
		},
		{
			name: "a provider id and tags are fine",
			make: func(n string) client.Object { return s.machine(n, keepMachine) },
			change: func(o client.Object) {
				o.(*infrav1.PacketMachine).Spec.ProviderID, o.(*infrav1.PacketMachine).Spec.Tags = ptr.To("equinixmetal://x"), []string{"a"}
			},
		},
		{
			name: "a machine template", want: "PacketMachineTemplate is immutable",
			make:   func(n string) client.Object { return s.machineTemplate(n, keepMachine) },
			change: func(o client.Object) { o.(*infrav1.PacketMachineTemplate).Spec.Template.Spec.OS = "other" },
		},
		{
			name:   "labels of a machine template are fine",
			make:   func(n string) client.Object { return s.machineTemplate(n, keepMachine) },
			change: func(o client.Object) { o.SetLabels(map[string]string{"a": "b"}) },
		},
		{name: "a machine template with a device", want: "can't share a device", make: func(n string) client.Object {
			return s.machineTemplate(n, func(p *infrav1.PacketMachineSpec) { p.ProviderID = ptr.To("x") })
		}},
		{
			name: "a cluster template", want: "PacketClusterTemplate is immutable",
			make:   func(n string) client.Object { return s.clusterTemplate(n, keepCluster) },
			change: func(o client.Object) { o.(*infrav1.PacketClusterTemplate).Spec.Template.Spec.Metro = "sv" },
		},
	}
}

func TestRulesForPacketKinds(t *testing.T) {
	server, _ := ready(t)
	c, s := newClient(t, server.Config), samples{server.Namespace(t)}
	for i, tc := range packetRules(s) {
		t.Run(tc.name, func(t *testing.T) {
			obj := tc.make(fmt.Sprintf("rule-%d", i))
			err := c.Create(t.Context(), obj)
			if tc.change != nil {
				if err != nil {
					t.Fatal(err)
				}
				tc.change(obj)
				err = c.Update(t.Context(), obj)
			}
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
	t.Run("the topology controller may try out changes of a template", func(t *testing.T) {
		obj := s.machineTemplate("topology", keepMachine)
		if err := c.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
		obj.Annotations = map[string]string{clusterv1.TopologyDryRunAnnotation: ""}
		obj.Spec.Template.Spec.OS = "other"
		if err := c.Update(t.Context(), obj, client.DryRunAll); err != nil {
			t.Errorf("refused: %v", err)
		}
	})
}

// oldManifests are existing manifests: everything in the versions of the upstream provider.
const oldManifests = `
apiVersion: cluster.x-k8s.io/v1beta1
kind: Cluster
metadata: {name: packet}
spec:
  clusterNetwork: {pods: {cidrBlocks: [192.168.0.0/16]}, services: {cidrBlocks: [172.26.0.0/16]}}
  infrastructureRef: {apiVersion: infrastructure.cluster.x-k8s.io/v1beta1, kind: PacketCluster, name: packet}
  controlPlaneRef: {apiVersion: controlplane.cluster.x-k8s.io/v1beta1, kind: KubeadmControlPlane, name: packet}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
kind: PacketCluster
metadata: {name: packet}
spec: {projectID: P, metro: da, credentialsRef: {name: packet}}
---
apiVersion: controlplane.cluster.x-k8s.io/v1beta1
kind: KubeadmControlPlane
metadata: {name: packet}
spec:
  replicas: 1
  version: v1.36.3
  machineTemplate:
    infrastructureRef: {apiVersion: infrastructure.cluster.x-k8s.io/v1beta1, kind: PacketMachineTemplate, name: packet}
  kubeadmConfigSpec:
    initConfiguration: {nodeRegistration: {kubeletExtraArgs: {cloud-provider: external, provider-id: "equinixmetal://{{ ` + "`{{ v1.instance_id }}`" + ` }}"}}}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
kind: PacketMachineTemplate
metadata: {name: packet}
spec: {template: {spec: {billingCycle: hourly, machineType: c3.small.x86, os: ubuntu_20_04, sshKeys: [mine]}}}`

func TestOldManifestsCreateAMachine(t *testing.T) {
	server, _ := ready(t)
	api := packettest.New(t)
	api.AddPlan(`{"slug":"c3.small.x86","specs":{"cpus":[{"count":1,"type":"Intel E-2278G 8-Core Processor @ 3.4GHz"}],"memory":{"total":"32GB"}}}`)
	c, ns := newClient(t, server.Config), server.Namespace(t)
	create(t, c, ns, fmt.Sprintf(`{apiVersion: v1, kind: Secret, metadata: {name: packet}, stringData: {PACKET_API_KEY: %q, METAL_API_URL: %q}}`, packettest.Token, api.URL))
	for _, manifest := range strings.Split(oldManifests, "---\n") {
		create(t, c, ns, manifest)
	}
	eventually(t, func() error {
		if len(api.Devices("P")) != 1 {
			return fmt.Errorf("%d devices", len(api.Devices("P")))
		}
		return nil
	})
	device := api.Devices("P")[0]
	api.SetState(device.ID, "active")
	eventually(t, func() error { return machineOn(t, c, ns, device.ID) })
	if holder := api.Addresses("P")[0].Device; holder != device.ID {
		eventually(t, func() error {
			if holder = api.Addresses("P")[0].Device; holder != device.ID {
				return fmt.Errorf("the address is on %q", holder)
			}
			return nil
		})
	}
	if userdata := fmt.Sprint(api.Orders()[0]["userdata"]); !strings.Contains(userdata, "equinixmetal://{{ v1.instance_id }}") {
		t.Error("the userdata lost the placeholder of cloud-init")
	}
	template := &infrav1.PacketMachineTemplate{}
	eventually(t, func() error {
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: "packet"}, template); err != nil {
			return err
		}
		if template.Status.Capacity.Cpu().String() != "8" || template.Status.Capacity.Memory().String() != "32Gi" {
			return fmt.Errorf("capacity is %v", template.Status.Capacity)
		}
		return nil
	})
}

// machineOn reports whether Cluster API has copied what the provider reports.
func machineOn(t *testing.T, c client.Client, ns, device string) error {
	t.Helper()
	machines := &clusterv1.MachineList{}
	if err := c.List(t.Context(), machines, client.InNamespace(ns)); err != nil {
		return err
	}
	if len(machines.Items) != 1 {
		return fmt.Errorf("%d machines", len(machines.Items))
	}
	m := machines.Items[0]
	if m.Spec.ProviderID != "equinixmetal://"+device || !ptr.Deref(m.Status.Initialization.InfrastructureProvisioned, false) || len(m.Status.Addresses) == 0 {
		return fmt.Errorf("provider id %q, status %+v", m.Spec.ProviderID, m.Status)
	}
	return nil
}
