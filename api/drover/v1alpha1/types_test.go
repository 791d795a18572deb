package v1alpha1

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

func TestKindsAreRegistered(t *testing.T) {
	s := runtime.NewScheme()
	if err := AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"AuditRecord", "AuditRecordList", "GitChange", "GitChangeList", "EtcdSnapshotSchedule", "EtcdSnapshotScheduleList"} {
		if _, err := s.New(GroupVersion.WithKind(kind)); err != nil {
			t.Error(err)
		}
	}
}

func TestAuditRecordRoundTrip(t *testing.T) {
	const manifest = "{cluster: {namespace: team, name: dev}, action: Update, user: kim, groups: [a], time: '2026-01-02T03:04:05.000006Z', generation: 3}"
	var spec AuditRecordSpec
	if err := yaml.Unmarshal([]byte(manifest), &spec); err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(spec)
	if err != nil {
		t.Fatal(err)
	}
	var want, got map[string]any
	if err := yaml.Unmarshal([]byte(manifest), &want); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	for key, value := range want {
		if key == "cluster" {
			continue // it has more fields
		}
		if diff := cmp.Diff(value, got[key]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", key, diff)
		}
	}
}
