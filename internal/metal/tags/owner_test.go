package tags

import "testing"

func TestOwnerOf(t *testing.T) {
	full := Owner{Namespace: "farm", Cluster: "herd", Machine: "herd-cp-1"}
	for name, tt := range map[string]struct {
		tags []string
		want Owner
		text string
	}{
		"no owner":                    {[]string{"blue", "kubernetes.io/role:worker"}, Owner{}, ""},
		"current tags":                {[]string{"blue", "capp:cluster-id:herd", "capp:machine-uid:herd-cp-1", "capp:namespace:farm"}, full, "farm/herd"},
		"tags from before 2023":       {[]string{"cluster-api-provider-packet:cluster-id:herd", "cluster-api-provider-packet:machine-uid:herd-cp-1", "cluster-api-provider-packet:namespace:farm"}, full, "farm/herd"},
		"a cluster without namespace": {[]string{"capp:cluster-id:herd"}, Owner{Cluster: "herd"}, "herd"},
		"a namespace without cluster": {[]string{"capp:namespace:farm"}, Owner{}, ""},
		"similar tags":                {[]string{"xcapp:cluster-id:herd", "capp:"}, Owner{}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := OwnerOf(tt.tags)
			if got != tt.want || got.ClusterName() != tt.text {
				t.Errorf("owner %+v named %q, want %+v named %q", got, got.ClusterName(), tt.want, tt.text)
			}
		})
	}
}

func TestOwnersOfDevices(t *testing.T) {
	for want, o := range map[string]Owner{
		"":         {},
		"dev":      {Cluster: "dev"},
		"team/dev": {Namespace: "team", Cluster: "dev", Machine: "dev-1"},
	} {
		if got := o.ClusterName(); got != want {
			t.Errorf("%+v is of cluster %q, want %q", o, got, want)
		}
	}
	for _, garbage := range [][]string{nil, {""}, {"ü", "a:b", "::"}} {
		if got := OwnerOf(garbage); got != (Owner{}) {
			t.Errorf("tags %q make %+v", garbage, got)
		}
	}
}
