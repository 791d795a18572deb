package commitstatus

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/git/forge"
)

const revision = "main@sha1:" + first

func config(namespace, revision string, applied metav1.ConditionStatus, message string) anywherev1.FluxConfig {
	c := anywherev1.FluxConfig{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "fleet"}}
	c.Status.Revision = revision
	c.Status.Conditions = []metav1.Condition{{Type: anywherev1.ClustersApplied, Status: applied, Message: message}}
	return c
}

func TestSummarize(t *testing.T) {
	good := config("a", revision, metav1.ConditionTrue, "Applied")
	for name, tt := range map[string]struct {
		all  []anywherev1.FluxConfig
		want forge.State
		text string
	}{
		"all have the commit":              {[]anywherev1.FluxConfig{good, good}, forge.Success, "Applied to all clusters"},
		"one has an older commit":          {[]anywherev1.FluxConfig{good, config("b", "main@sha1:0", metav1.ConditionTrue, "")}, forge.Pending, "Drover has seen"},
		"an older commit was rejected":     {[]anywherev1.FluxConfig{config("b", "main@sha1:0", metav1.ConditionFalse, "")}, forge.Pending, "Drover has seen"},
		"one is not observed":              {[]anywherev1.FluxConfig{{}}, forge.Pending, "Drover has seen"},
		"a rejection comes before waiting": {[]anywherev1.FluxConfig{config("b", revision, metav1.ConditionUnknown, ""), config("c", revision, metav1.ConditionFalse, "No")}, forge.Failure, "c: No"},
		"several rejections":               {[]anywherev1.FluxConfig{config("d", revision, metav1.ConditionFalse, "No"), config("c", revision, metav1.ConditionFalse, "No")}, forge.Failure, "2 namespaces: c: No"},
	} {
		got := summarize(tt.all, revision)
		if got.State != tt.want || !strings.HasPrefix(got.Description, tt.text) {
			t.Errorf("%s: %s %q", name, got.State, got.Description)
		}
	}
}

func TestTheDescriptionOfManyRejectionsIsBounded(t *testing.T) {
	var all []anywherev1.FluxConfig
	for i := range 500 {
		all = append(all, config(fmt.Sprintf("n%03d", i), revision, metav1.ConditionFalse, "No"))
	}
	if got := summarize(all, revision).Description; len(got) > 140 || !strings.Contains(got, "500 namespaces") {
		t.Errorf("description %q", got)
	}
}
