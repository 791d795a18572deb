package fleet

import (
	"fmt"
	"testing"
)

func TestFind(t *testing.T) {
	all := []Cluster{{Namespace: "city", Name: "herd"}, {Namespace: "farm", Name: "goats"}, {Namespace: "farm", Name: "herd"}}
	var many []Cluster
	for i := range 12 {
		many = append(many, Cluster{Namespace: "n", Name: fmt.Sprintf("c%02d", i)})
	}
	for name, tt := range map[string]struct {
		all             []Cluster
		namespace, name string
		want, wantErr   string
	}{
		"one of that name":               {all, "", "goats", "farm/goats", ""},
		"several, one in the namespace":  {all, "farm", "herd", "farm/herd", ""},
		"several":                        {all, "", "herd", "", `2 clusters are called "herd" (city/herd, farm/herd): choose one with --namespace`},
		"none":                           {all, "", "cows", "", `there is no cluster "cows"; there are city/herd, farm/goats, farm/herd`},
		"none in the namespace":          {all, "city", "goats", "", `there is no cluster "goats" in namespace "city"; there are city/herd, farm/goats, farm/herd`},
		"none at all":                    {nil, "", "goats", "", `there is no cluster "goats", nor any other`},
		"a large fleet fits on a screen": {many, "", "x", "", `there is no cluster "x"; there are n/c00, n/c01, n/c02, n/c03, n/c04, n/c05, n/c06, n/c07, n/c08, n/c09, 2 more`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := find(tt.all, tt.namespace, tt.name)
			if tt.wantErr != "" {
				if err == nil || err.Error() != tt.wantErr {
					t.Errorf("error %v, want %q", err, tt.wantErr)
				}
				return
			}
			if err != nil || got.Key() != tt.want {
				t.Errorf("found %s (%v), want %s", got.Key(), err, tt.want)
			}
		})
	}
}
