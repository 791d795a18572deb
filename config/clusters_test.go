package config_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestClusterKinds(t *testing.T) {
	for name, want := range map[string]struct {
		short   []string
		columns []string
	}{
		"clusters.anywhere.eks.amazonaws.com":                {[]string{"anc"}, []string{"Age", "Ready", "Version", "CP", "Workers", "Management"}},
		"dockerdatacenterconfigs.anywhere.eks.amazonaws.com": {nil, []string{"Age"}},
		"packetdatacenterconfigs.anywhere.eks.amazonaws.com": {nil, []string{"Project", "Metro", "Age"}},
		"packetmachineconfigs.anywhere.eks.amazonaws.com":    {nil, []string{"Type", "OS", "Age"}},
		"fluxconfigs.anywhere.eks.amazonaws.com":             {nil, []string{"Branch", "Ready", "Revision", "Age"}},
		"gitopsconfigs.anywhere.eks.amazonaws.com":           {nil, []string{"Age"}},
		"oidcconfigs.anywhere.eks.amazonaws.com":             {nil, []string{"Issuer", "Age"}},
	} {
		crd := definition(t, name)
		var columns []string
		for _, c := range crd.Spec.Versions[0].AdditionalPrinterColumns {
			columns = append(columns, c.Name)
		}
		if diff := cmp.Diff(want.columns, columns); diff != "" {
			t.Errorf("%s: columns (-want +got):\n%s", name, diff)
		}
		if diff := cmp.Diff(want.short, crd.Spec.Names.ShortNames); diff != "" {
			t.Errorf("%s: short names (-want +got):\n%s", name, diff)
		}
		if crd.Spec.Versions[0].Subresources == nil || crd.Spec.Versions[0].Subresources.Status == nil {
			t.Errorf("%s: the status is not a subresource", name)
		}
	}
}
