package inspect

import (
	"errors"
	"fmt"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestFind(t *testing.T) {
	all := []client.ObjectKey{{Namespace: "city", Name: "herd"}, {Namespace: "farm", Name: "goats"}, {Namespace: "farm", Name: "herd"}}
	var many []client.ObjectKey
	for i := range 12 {
		many = append(many, client.ObjectKey{Namespace: "n", Name: fmt.Sprintf("c%02d", i)})
	}
	for name, tt := range map[string]struct {
		all             []client.ObjectKey
		namespace, name string
		want, wantErr   string
		missing         bool
	}{
		"a unique name":                     {all, "", "goats", "farm/goats", "", false},
		"a name in a namespace":             {all, "farm", "herd", "farm/herd", "", false},
		"an ambiguous name":                 {all, "", "herd", "", `found 2 clusters named "herd": city/herd, farm/herd; select one with --namespace`, false},
		"an unknown name":                   {all, "", "cows", "", `cluster "cows" not found; existing clusters: city/herd, farm/goats, farm/herd`, true},
		"a name of another namespace":       {all, "city", "goats", "", `cluster "goats" not found in namespace "city"; existing clusters: city/herd, farm/goats, farm/herd`, true},
		"no objects":                        {nil, "", "goats", "", `cluster "goats" not found`, true},
		"the error of a large fleet is cut": {many, "", "x", "", `cluster "x" not found; existing clusters: n/c00, n/c01, n/c02, n/c03, n/c04, n/c05, n/c06, n/c07, n/c08, n/c09 and 2 more`, true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := find(tt.all, query{"cluster", tt.namespace, tt.name}, func(k *client.ObjectKey) client.ObjectKey { return *k })
			if tt.wantErr != "" {
				var missing *NotFoundError
				if err == nil || err.Error() != tt.wantErr || errors.As(err, &missing) != tt.missing {
					t.Errorf("error %v, want %q, a NotFoundError: %v", err, tt.wantErr, tt.missing)
				}
				return
			}
			if err != nil || got.String() != tt.want {
				t.Errorf("found %s (%v), want %s", got, err, tt.want)
			}
		})
	}
}
