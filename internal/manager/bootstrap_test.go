package manager_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	infrav1 "github.com/drover-dev/drover/api/infrastructure/v1beta1"
	"github.com/drover-dev/drover/internal/metal/userdata"
)

// send sends a request with the project's token or another one.
func (s simulated) send(t *testing.T, method, path, body string, into any) error {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, s.URL+path, strings.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("X-Auth-Token", s.Token)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	if res.StatusCode >= http.StatusBadRequest {
		return fmt.Errorf("%s %s: %s: %s", method, path, res.Status, data)
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(data, into)
}

// anotherToken creates another token for the project.
func (s simulated) anotherToken(t *testing.T) string {
	t.Helper()
	var out struct{ Token string }
	project := s.Project
	s.Token, s.URL = s.Admin, strings.TrimSuffix(s.URL, "/metal/v1")
	s.post(t, "/drover/v1/projects/"+project+"/tokens", "", &out)
	return out.Token
}

// noCA is userdata of a control plane without certificates.
const noCA = `#cloud-config
write_files:
- path: /run/kubeadm/kubeadm.yaml
  content: |
    apiVersion: kubeadm.k8s.io/v1beta4
    kind: InitConfiguration
`

func TestUnusualUserdataIsHandledOrRejected(t *testing.T) {
	server, _ := ready(t)
	t.Parallel()
	sim := newSimulated(t)
	c := newClient(t, server.Config)
	megabyte := "#cloud-config\nwrite_files:\n- path: /big\n  content: "
	megabyte += strings.Repeat("x", userdata.MaxSize-len(megabyte)-1) + "\n"
	ns := server.Namespace(t)
	sim.giveCredentials(t, c, ns)
	createAll(t, c, ns, strings.ReplaceAll(loneMachine, "PROJECT", sim.Project))
	defer deleteCluster(t, c, ns, "lone")
	tests := []struct {
		name, data string
		// arrives is the userdata of the device; the input if it is empty.
		arrives string
		// message is the expected message on the Machine; empty means success.
		message string
	}{
		{name: "literal braces", data: "#!/bin/sh\necho '{{ .Values.x }} {{- range . }} {% raw %} {{'\n"},
		{name: "braces that were quoted for the original provider", data: "#!/bin/sh\necho {{ `{{ v1.instance_id }}` }}\n", arrives: "#!/bin/sh\necho {{ v1.instance_id }}\n"},
		{name: "a megabyte", data: megabyte},
		{name: "unknown keys of a cloud-config", data: "#cloud-config\nfrobnicate: {deeply: [true]}\nruncmd: [ls]\n"},
		{name: "broken YAML", data: "#cloud-config\nruncmd: [\n", message: "The bootstrap data is not a valid cloud-config: see line"},
		{name: "nothing", data: " \n", message: "The bootstrap data is empty"},
		{name: "what only the machine finds out", data: noCA, message: "the userdata of the control plane lacks /etc/kubernetes/pki/ca.crt"},
	}
	for i, tc := range tests {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: odd(i)}, Data: map[string][]byte{"value": []byte(tc.data)}}
		if err := c.Create(t.Context(), secret); err != nil {
			t.Fatal(err)
		}
		createAll(t, c, ns, strings.ReplaceAll(oddMachine, "NAME", odd(i)))
	}
	for i, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			key := client.ObjectKey{Namespace: ns, Name: odd(i)}
			if tc.message != "" {
				eventuallyCluster(t, func() error { return awaitMessage(t, c, key, tc.message) })
				return
			}
			sim.checkUserdata(t, c, key, cmp.Or(tc.arrives, tc.data))
		})
	}
}

func odd(i int) string { return fmt.Sprintf("odd-%d", i) }

// checkUserdata waits until a machine is ready, and compares the userdata of its device.
func (s simulated) checkUserdata(t *testing.T, c client.Client, machine client.ObjectKey, want string) {
	t.Helper()
	packet := &infrav1.PacketMachine{}
	eventuallyCluster(t, func() error {
		if err := c.Get(t.Context(), machine, packet); err != nil {
			return err
		}
		return wellIn(packet, clusterv1.ReadyCondition, infrav1.BootstrapExecSucceeded)
	})
	got := s.Disk(t, strings.TrimPrefix(*packet.Spec.ProviderID, "equinixmetal://"))
	if got != want {
		t.Errorf("the device was given %d bytes that begin with %.80q, want %d and %.80q", len(got), got, len(want), want)
	}
}

// oddMachine is an additional machine of the lone cluster.
const oddMachine = `
apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
kind: PacketMachine
metadata: {name: NAME}
spec: {os: ubuntu_24_04, machineType: c3.small.x86}
---
apiVersion: cluster.x-k8s.io/v1beta2
kind: Machine
metadata: {name: NAME}
spec:
  clusterName: lone
  version: v1.36.3
  bootstrap: {dataSecretName: NAME}
  infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: PacketMachine, name: NAME}`

// awaitMessage waits for the message on the Machine, where users see it.
func awaitMessage(t *testing.T, c client.Client, machine client.ObjectKey, message string) error {
	t.Helper()
	m := &clusterv1.Machine{}
	if err := c.Get(t.Context(), machine, m); err != nil {
		return err
	}
	got := meta.FindStatusCondition(m.Status.Conditions, clusterv1.MachineInfrastructureReadyCondition)
	if got == nil || got.Status != metav1.ConditionFalse || !strings.Contains(got.Message, message) {
		return fmt.Errorf("InfrastructureReady is %+v, want it to say %q", got, message)
	}
	return nil
}
