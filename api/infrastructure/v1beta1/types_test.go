package v1beta1

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

func TestEveryKindIsRegisteredWithItsList(t *testing.T) {
	s := runtime.NewScheme()
	if err := AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"PacketCluster", "PacketClusterTemplate", "PacketMachine", "PacketMachineTemplate"} {
		for _, name := range []string{kind, kind + "List"} {
			o, err := s.New(GroupVersion.WithKind(name))
			if err != nil {
				t.Error(err)
				continue
			}
			if o.DeepCopyObject() == o {
				t.Errorf("a copy of a %s is the object itself", name)
			}
		}
	}
}

func TestEndpointIsValidWithHostAndPort(t *testing.T) {
	for _, tt := range []struct {
		endpoint    APIEndpoint
		zero, valid bool
	}{
		{APIEndpoint{}, true, false},
		{APIEndpoint{Host: "192.0.2.1"}, false, false},
		{APIEndpoint{Port: 6443}, false, false},
		{APIEndpoint{Host: "192.0.2.1", Port: 6443}, false, true},
	} {
		if tt.endpoint.IsZero() != tt.zero || tt.endpoint.IsValid() != tt.valid {
			t.Errorf("%+v: zero %t, valid %t", tt.endpoint, tt.endpoint.IsZero(), tt.endpoint.IsValid())
		}
	}
}

func TestManifestsRoundTrip(t *testing.T) {
	for name, tt := range map[string]struct {
		manifest string
		spec     any
	}{
		"a cluster": {
			"{projectID: p, metro: da, controlPlaneEndpoint: {host: 192.0.2.1, port: 6443}, vipManager: CPEM, credentialsRef: {name: packet}, apiURL: 'https://api.example.com'}",
			&PacketClusterSpec{},
		},
		"a cluster without an endpoint": {"{projectID: p, facility: da11}", &PacketClusterSpec{}},
		"a machine": {
			"{os: ubuntu_24_04, machineType: c3.small.x86, billingCycle: hourly, sshKeys: [a], tags: [b], ipxeURL: 'http://x', hardwareReservationID: next-available, providerID: 'equinixmetal://1'}",
			&PacketMachineSpec{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if err := yaml.UnmarshalStrict([]byte(tt.manifest), tt.spec); err != nil {
				t.Fatal(err)
			}
			data, err := json.Marshal(tt.spec)
			if err != nil {
				t.Fatal(err)
			}
			var want, got map[string]any
			if err := yaml.Unmarshal([]byte(tt.manifest), &want); err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(data, &got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("manifest (-want +got):\n%s", diff)
			}
		})
	}
}

func TestConditionsAreThoseOfTheStatus(t *testing.T) {
	want := []metav1.Condition{{Type: "Ready", Status: metav1.ConditionTrue}}
	c, m := &PacketCluster{}, &PacketMachine{}
	c.SetConditions(want)
	m.SetConditions(want)
	for name, got := range map[string][]metav1.Condition{"get of a cluster": c.GetConditions(), "status of a cluster": c.Status.Conditions, "get of a machine": m.GetConditions(), "status of a machine": m.Status.Conditions} {
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestReadyIsAlwaysWritten(t *testing.T) {
	data, err := json.Marshal(PacketMachineStatus{})
	if err != nil || !strings.Contains(string(data), `"ready":false`) {
		t.Errorf("status %s, error %v: clients of the older contract require ready", data, err)
	}
}
