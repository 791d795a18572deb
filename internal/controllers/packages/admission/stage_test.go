package admission

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
)

func TestUnknownStageIsRejected(t *testing.T) {
	rules := &packageRules{}
	was := &packagesv1.Package{ObjectMeta: metav1.ObjectMeta{Name: "my", Namespace: "eksa-packages-x"}}
	for stage, rejected := range map[string]bool{"BeforeWorkers": false, "None": false, "before": true, "": true} {
		is := was.DeepCopy()
		is.Annotations = map[string]string{addonsv1.UpgradeStageAnnotation: stage}
		_, err := rules.ValidateUpdate(t.Context(), was, is)
		if (err != nil) != rejected || rejected && !strings.Contains(err.Error(), "AfterWorkers") {
			t.Errorf("%q: %v", stage, err)
		}
		if _, err := rules.ValidateUpdate(t.Context(), is, is.DeepCopy()); err != nil {
			t.Errorf("%q exists, and the Package can't be updated: %v", stage, err)
		}
	}
}
