package bundles

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/base/text"
)

func TestConditions(t *testing.T) {
	var (
		badName  = errors.New("Invalid bundle name")
		unsigned = errors.New("Missing signature")
		tooNew   = errors.New("bundle v1-36-1 requires Drover v9.0.0; this is v1.0.0")
	)
	for _, tc := range []struct {
		name  string
		facts facts
		state packagesv1.PackageBundleStateEnum
		want  []string
	}{
		{"a usable bundle", facts{}, "available", []string{"SignatureValid=True Valid", "Compatible=True Compatible", "Ready=True Available"}},
		{
			"another namespace",
			facts{ignored: true},
			"ignored",
			[]string{"Ready=False Ignored: Bundles are used only in namespace eksa-packages"},
		},
		{
			"no signature",
			facts{signature: unsigned},
			"invalid",
			[]string{
				"SignatureValid=False Invalid: Verifying the signature failed: Missing signature", "Compatible=True Compatible",
				"Ready=False Invalid: Verifying the signature failed: Missing signature",
			},
		},
		{
			"an invalid name",
			facts{name: badName},
			"invalid",
			[]string{"SignatureValid=True Valid", "Compatible=True Compatible", "Ready=False NameInvalid: Invalid bundle name"},
		},
		{
			"an upgrade takes precedence",
			facts{name: badName, signature: unsigned, version: tooNew},
			"controller upgrade required",
			[]string{
				"SignatureValid=False Invalid: Verifying the signature failed: Missing signature",
				"Compatible=False ControllerUpgradeRequired: Upgrade Drover: bundle v1-36-1 requires Drover v9.0.0; this is v1.0.0",
				"Ready=False ControllerUpgradeRequired: Upgrade Drover: bundle v1-36-1 requires Drover v9.0.0; this is v1.0.0",
			},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := tc.facts.state(); got != tc.state {
				t.Errorf("got state %q, want %q", got, tc.state)
			}
			if diff := cmp.Diff(tc.want, printed(tc.facts.conditions())); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func printed(conditions []metav1.Condition) []string {
	var out []string
	for _, c := range conditions {
		line := c.Type + "=" + string(c.Status) + " " + c.Reason
		if c.Message != "" {
			line += ": " + c.Message
		}
		out = append(out, line)
	}
	return out
}

func TestMessagesAreBounded(t *testing.T) {
	f := facts{signature: errors.New(strings.Repeat("é", text.MaxMessage))}
	for _, c := range f.conditions() {
		if len(c.Message) > text.MaxMessage {
			t.Errorf("the message of %s is %d bytes", c.Type, len(c.Message))
		}
	}
}

func TestReportRemovesConditionsOfIgnoredBundle(t *testing.T) {
	b := &packagesv1.PackageBundle{ObjectMeta: metav1.ObjectMeta{Generation: 3}}
	report(b, facts{})
	report(b, facts{ignored: true})
	if len(b.Status.Conditions) != 1 || b.Status.Conditions[0].Type != packagesv1.Ready || b.Status.ObservedGeneration != 3 {
		t.Errorf("got %+v", b.Status)
	}
}

func TestUsed(t *testing.T) {
	users := []packagesv1.PackageBundleController{
		{Spec: packagesv1.PackageBundleControllerSpec{ActiveBundle: "v1-36-1"}},
		{Status: packagesv1.PackageBundleControllerStatus{LatestBundle: "v1-36-2"}},
	}
	for name, want := range map[string]bool{"v1-36-1": true, "v1-36-2": true, "v1-36-3": false} {
		if got := used(name, users); got != want {
			t.Errorf("used(%s) = %t", name, got)
		}
	}
}
