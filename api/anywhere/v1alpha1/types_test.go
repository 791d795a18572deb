package v1alpha1

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

func TestEveryKindIsRegisteredWithItsList(t *testing.T) {
	s := runtime.NewScheme()
	if err := AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{
		ClusterKind, DockerDatacenterConfigKind, PacketDatacenterConfigKind, PacketMachineConfigKind, FluxConfigKind, GitOpsConfigKind, OIDCConfigKind,
	} {
		for _, name := range []string{kind, kind + "List"} {
			if _, err := s.New(GroupVersion.WithKind(name)); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestCredentialsHaveADefault(t *testing.T) {
	for name, tt := range map[string]struct {
		ref  *CredentialsRef
		want string
	}{
		"none": {nil, DefaultPacketCredentials}, "empty": {&CredentialsRef{}, DefaultPacketCredentials}, "named": {&CredentialsRef{Name: "own"}, "own"},
	} {
		d := &PacketDatacenterConfig{Spec: PacketDatacenterConfigSpec{CredentialsRef: tt.ref}}
		if got := d.CredentialsName(); got != tt.want {
			t.Errorf("%s: got %q, want %q", name, got, tt.want)
		}
	}
}

func TestUserManagedNetworksAreSkipped(t *testing.T) {
	yes, no := true, false
	for name, tt := range map[string]struct {
		config *CNIConfig
		want   bool
	}{
		"no config":      {nil, false},
		"another kind":   {&CNIConfig{Kindnetd: &KindnetdConfig{}}, false},
		"nothing is set": {&CNIConfig{Cilium: &CiliumConfig{}}, false},
		"false":          {&CNIConfig{Cilium: &CiliumConfig{SkipUpgrade: &no}}, false},
		"true":           {&CNIConfig{Cilium: &CiliumConfig{SkipUpgrade: &yes}}, true},
	} {
		c := &Cluster{Spec: ClusterSpec{ClusterNetwork: ClusterNetwork{CNIConfig: tt.config}}}
		if got := c.IsSkipUpgrade(); got != tt.want {
			t.Errorf("%s: got %t, want %t", name, got, tt.want)
		}
	}
}

func TestConditionsAreThoseOfTheStatus(t *testing.T) {
	want := []metav1.Condition{{Type: Ready, Status: metav1.ConditionTrue}}
	c := &Cluster{}
	c.SetConditions(want)
	if diff := cmp.Diff(want, c.GetConditions()); diff != "" {
		t.Errorf("conditions (-want +got):\n%s", diff)
	}
}

func TestMessagesAreSentencesWithoutPeriod(t *testing.T) {
	for _, message := range []string{
		FirstControlPlaneUnavailableMessage, ControlPlaneNotReadyMessage, ControlPlaneOutdatedMessage, ControlPlaneScalingUpMessage, ControlPlaneScalingDownMessage,
		ControlPlaneNodesNotReadyMessage, KubeadmControlPlaneNotReadyMessage, WorkersOutdatedMessage, WorkersScalingUpMessage, WorkersScalingDownMessage,
		WorkersNotReadyMessage, AutoscalerConstraintNotMetMessage, MachineDeploymentNotReadyMessage, EtcdNotAvailableMessage, EtcdNotReadyMessage,
	} {
		if message[0] < 'A' || message[0] > 'Z' || strings.HasSuffix(message, ".") {
			t.Errorf("message %q", message)
		}
	}
}
