package template

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-dev/drover/internal/metal/client"
)

func TestCapacity(t *testing.T) {
	for _, tc := range []struct {
		name, specs string
		want        map[string]string
	}{
		{name: "cores are in the processor's name", specs: `{"cpus":[{"count":2,"type":"AMD EPYC 7402P 24-Core Processor"}],"memory":{"total":"64GB"}}`, want: map[string]string{"cpu": "48", "memory": "64Gi", "pods": "110"}},
		{name: "a processor that does not tell counts as one core", specs: `{"cpus":[{"count":2,"type":"virtual"}],"memory":{"total":"2 GiB"}}`, want: map[string]string{"cpu": "2", "memory": "2Gi", "pods": "110"}},
		{name: "fractions and terabytes", specs: `{"cpus":[],"memory":{"total":"1.5TB"}}`, want: map[string]string{"memory": "1536Gi", "pods": "110"}},
		{name: "a plan that tells nothing", specs: `{"memory":{"total":"plenty"}}`, want: map[string]string{}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var specs client.PlanSpecs
			if err := json.Unmarshal([]byte(tc.specs), &specs); err != nil {
				t.Fatal(err)
			}
			got := map[string]string{}
			for name, quantity := range capacity(specs) {
				got[string(name)] = quantity.String()
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("capacity (-want +got):\n%s", diff)
			}
		})
	}
}

func TestArchitecture(t *testing.T) {
	for slug, want := range map[string]string{"c3.large.arm64": "arm64", "c2.large.arm": "arm64", "m3.small.x86": "amd64", "local.small": "amd64"} {
		if got := architecture(&client.Plan{Slug: slug}); got != want {
			t.Errorf("%s is %s, want %s", slug, got, want)
		}
	}
}
