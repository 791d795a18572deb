package manager_test

import (
	"fmt"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/drover-dev/drover/api/infrastructure/v1beta1"
	"github.com/drover-dev/drover/internal/install"
	"github.com/drover-dev/drover/internal/metal"
	"github.com/drover-dev/drover/internal/metal/admin"
	"github.com/drover-dev/drover/internal/metal/api"
	"github.com/drover-dev/drover/internal/metal/fault"
	"github.com/drover-dev/drover/internal/test/kubetest"
)

// crashes is an API server with a manager and a metal service, real processes that can be killed.
type crashes struct {
	t       *testing.T
	server  *kubetest.Server
	client  client.Client
	webhook string
	home    metal.Home
	project string
	metal   *kubetest.Process
	manager *instance
}

func newCrashes(t *testing.T) *crashes {
	t.Helper()
	c := &crashes{t: t, server: kubetest.Start(t), webhook: kubetest.FreeAddress(t), home: metal.Home{Dir: t.TempDir()}}
	if err := install.Apply(t.Context(), c.server.Config, install.Options{WebhookURL: "https://" + c.webhook}); err != nil {
		t.Fatal(err)
	}
	c.client = newClient(t, c.server.Config)
	c.startManager()
	c.startMetal()
	c.manager.awaitReady(t)
	var projects api.Projects
	c.call(http.MethodGet, "/projects", nil, &projects)
	c.project = projects.Projects[0].ID
	return c
}

// startManager also serves the webhooks of a manager that was killed.
func (c *crashes) startManager() {
	c.t.Helper()
	c.manager = launch(c.t, c.server.Kubeconfig(c.t), "--install=false", "--v=4", "--webhook-addr="+c.webhook)
}

// startMetal runs the program as users do. It keeps its address after a restart.
func (c *crashes) startMetal() {
	c.t.Helper()
	cmd := exec.Command("/proc/self/exe", "metal", "serve", "--home", c.home.Dir, "--driver", "memory", "--speed", "100")
	cmd.Args[0] = "drover"
	cmd.Env = append(cmd.Environ(), asDrover+"=1")
	c.metal = kubetest.StartProcess(c.t, cmd)
	eventually(c.t, func() error { return c.ask(http.MethodGet, "/projects", nil, nil) })
}

func (c *crashes) ask(method, path string, body, out any) error {
	m, err := admin.Open(c.home)
	if err != nil {
		return err
	}
	return m.Do(c.t.Context(), method, path, body, out)
}

func (c *crashes) call(method, path string, body, out any) {
	c.t.Helper()
	if err := c.ask(method, path, body, out); err != nil {
		c.t.Fatal(err)
	}
}

func (c *crashes) devices() []api.Device {
	c.t.Helper()
	var out api.Devices
	c.call(http.MethodGet, "/projects/"+c.project+"/devices?per_page=1000", nil, &out)
	return out.Devices
}

// addForeignDevices adds devices of other machines of the same cluster, more than fit on two pages.
func (c *crashes) addForeignDevices(namespace string) {
	c.t.Helper()
	for i := range 25 {
		c.call(http.MethodPost, "/projects/"+c.project+"/devices", map[string]any{
			"hostname": fmt.Sprintf("other-%d", i), "plan": "c3.small.x86", "metro": "da", "operating_system": "ubuntu_24_04",
			"tags": []string{"capp:cluster-id:lone", fmt.Sprintf("capp:machine-uid:other-%d", i), "capp:namespace:" + namespace},
		}, nil)
	}
}

// loneMachine is a cluster with one machine with the given userdata; only the provider uses it.
const loneMachine = `
apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata: {name: lone}
spec: {infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: PacketCluster, name: lone}}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
kind: PacketCluster
metadata: {name: lone}
spec: {projectID: PROJECT, metro: da, credentialsRef: {name: packet}}
---
{apiVersion: v1, kind: Secret, metadata: {name: boot}, stringData: {value: "#!/bin/sh\n"}}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
kind: PacketMachine
metadata: {name: lone}
spec: {os: ubuntu_24_04, machineType: c3.small.x86}
---
apiVersion: cluster.x-k8s.io/v1beta2
kind: Machine
metadata: {name: lone}
spec:
  clusterName: lone
  version: v1.36.3
  bootstrap: {dataSecretName: boot}
  infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: PacketMachine, name: lone}`

func (c *crashes) createLoneMachine(namespace string) {
	c.t.Helper()
	endpoint, err := c.home.ReadEndpoint()
	if err != nil {
		c.t.Fatal(err)
	}
	token, err := c.home.Token(c.project)
	if err != nil {
		c.t.Fatal(err)
	}
	create(c.t, c.client, namespace, fmt.Sprintf(`{apiVersion: v1, kind: Secret, metadata: {name: packet}, stringData: {PACKET_API_KEY: %q, METAL_API_URL: %q}}`, token, endpoint.URL+"/metal/v1"))
	for _, manifest := range strings.Split(strings.ReplaceAll(loneMachine, "PROJECT", c.project), "---\n") {
		create(c.t, c.client, namespace, manifest)
	}
}

// TestCrashBeforeRecordingLeavesOneDevice kills the manager, metal or both after metal has stored
// the order and before the manager has recorded the ID of the device: metal never responds, so that
// the manager waits.
func TestCrashBeforeRecordingLeavesOneDevice(t *testing.T) {
	c := newCrashes(t)
	for _, tc := range []struct {
		name string
		kill func()
	}{
		{"metal is killed", func() {
			c.metal.Kill()
			c.startMetal()
		}},
		{"the manager is killed", func() {
			c.manager.Kill()
			c.startManager()
		}},
		{"both are killed", func() {
			c.manager.Kill()
			c.metal.Kill()
			c.startMetal()
			c.startManager()
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			namespace := c.server.Namespace(t)
			c.addForeignDevices(namespace)
			before := len(c.devices())
			lose := fault.Fault{Kind: fault.Timeout, After: true, Method: http.MethodPost, Path: "/projects/*/devices", Count: 1}
			faults := "/drover/v1/projects/" + c.project + "/faults"
			c.call(http.MethodPost, faults, lose, nil)
			c.createLoneMachine(namespace)
			eventually(t, func() error {
				if n := len(c.devices()); n != before+1 {
					return fmt.Errorf("%d devices, want %d", n, before+1)
				}
				return c.struck(faults)
			})
			if m := c.machine(namespace); m.Spec.ProviderID != nil {
				t.Fatalf("provider id %v: the moment is missed", *m.Spec.ProviderID)
			}
			tc.kill()
			eventually(t, func() error { return c.ready(namespace) })
			c.checkOneDevice(t, namespace, before+1)
		})
	}
}

func (c *crashes) struck(faults string) error {
	var out struct{ Faults []fault.Fault }
	if err := c.ask(http.MethodGet, faults, nil, &out); err != nil {
		return err
	}
	if out.Faults[len(out.Faults)-1].Struck == 0 {
		return fmt.Errorf("no order yet")
	}
	return nil
}

func (c *crashes) machine(namespace string) *infrav1.PacketMachine {
	c.t.Helper()
	m := &infrav1.PacketMachine{}
	if err := c.client.Get(c.t.Context(), client.ObjectKey{Namespace: namespace, Name: "lone"}, m); err != nil {
		c.t.Fatal(err)
	}
	return m
}

func (c *crashes) ready(namespace string) error {
	if m := c.machine(namespace); !m.Status.Ready || m.Status.FailureReason != nil {
		return fmt.Errorf("%+v", m.Status)
	}
	return nil
}

// checkOneDevice reports whether the machine's only device is the recorded one, and whether all
// others are unchanged.
func (c *crashes) checkOneDevice(t *testing.T, namespace string, total int) {
	t.Helper()
	all := c.devices()
	own := slices.DeleteFunc(slices.Clone(all), func(d api.Device) bool {
		return !slices.Contains(d.Tags, "capp:machine-uid:lone") || !slices.Contains(d.Tags, "capp:namespace:"+namespace)
	})
	if len(own) != 1 || len(all) != total {
		t.Fatalf("%d devices for the machine and %d in all, want 1 and %d", len(own), len(all), total)
	}
	if got := ptr.Deref(c.machine(namespace).Spec.ProviderID, ""); got != "equinixmetal://"+own[0].ID {
		t.Errorf("got provider ID %q, want that of device %q", got, own[0].ID)
	}
}
