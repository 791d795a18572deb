package config_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"

	"github.com/drover-dev/drover/config"
)

func TestPackageKindsMatchUpstream(t *testing.T) {
	for name, want := range map[string]struct {
		short   []string
		columns []string
	}{
		"packages.packages.eks.amazonaws.com":                 {nil, []string{"Package", "Age", "State", "CurrentVersion", "TargetVersion", "Detail"}},
		"packagebundles.packages.eks.amazonaws.com":           {nil, []string{"State"}},
		"packagebundlecontrollers.packages.eks.amazonaws.com": {[]string{"pbc"}, []string{"ActiveBundle", "State", "Detail"}},
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
	}
}

func TestPackageWebhookPathsMatchUpstream(t *testing.T) {
	got := map[string]string{}
	for _, m := range config.Webhooks() {
		for _, w := range decode[admissionv1.ValidatingWebhookConfiguration](t, m).Webhooks {
			if w.Rules[0].APIGroups[0] == "packages.eks.amazonaws.com" {
				got[w.Name] = *w.ClientConfig.Service.Path
			}
		}
	}
	want := map[string]string{
		"vpackage.kb.io":                 "/validate-packages-eks-amazonaws-com-v1alpha1-package",
		"vpackagebundle.kb.io":           "/validate-packages-eks-amazonaws-com-v1alpha1-packagebundle",
		"vpackagebundlecontroller.kb.io": "/validate-packages-eks-amazonaws-com-v1alpha1-packagebundlecontroller",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("webhooks (-want +got):\n%s", diff)
	}
}
