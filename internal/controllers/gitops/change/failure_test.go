package change

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"k8s.io/utils/ptr"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/controllers/reconcile"
	"github.com/drover-dev/drover/internal/git"
)

func TestDirectoryOfTheManagementCluster(t *testing.T) {
	managed := func(by string) *anywherev1.Cluster {
		c := &anywherev1.Cluster{}
		c.Name, c.Spec.Management, c.Spec.ManagementCluster.Name = "dev", ptr.To(false), by
		return c
	}
	for name, test := range map[string]struct {
		given, plane string
		cluster      *anywherev1.Cluster
		want         string // empty if it is not known
	}{
		"the FluxConfig names it": {"fleet/x", "mgmt", managed("other"), "fleet/x"},
		"the Cluster names it":    {"", "mgmt", managed("other"), "clusters/other"},
		"it is this plane":        {"", "mgmt", managed(""), "clusters/mgmt"},
		"it has no name":          {"", "", managed(""), ""},
	} {
		got, err := (&Controller{ManagementCluster: test.plane}).pathOf(test.given, test.cluster)
		if got != test.want || (err == nil) != (test.want != "") {
			t.Errorf("%s: %q, %v, want %q", name, got, err, test.want)
		}
	}
}

func TestOutcomesOfCommits(t *testing.T) {
	for name, test := range map[string]struct {
		err    error
		reason string
		after  time.Duration // negative if it is final
	}{
		"wrong credentials":     {&git.AuthenticationError{}, "Denied", retryDenied},
		"an unknown server":     {&git.IdentityError{}, "Denied", retryDenied},
		"a missing repository":  {&git.NotFoundError{}, "Denied", retryDenied},
		"a protected branch":    {&git.RejectedError{}, "Denied", retryDenied},
		"unusable credentials":  {&git.InvalidError{Problems: []string{"no key"}}, "Denied", retryDenied},
		"no answer":             {&git.UnreachableError{}, "GitUnavailable", retryUnavailable},
		"a wrong answer":        {&git.ProtocolError{}, "GitUnavailable", retryUnavailable},
		"others were faster":    {&git.ConflictError{}, "GitUnavailable", retryUnavailable},
		"the deadline passed":   {fmt.Errorf("waiting: %w", context.DeadlineExceeded), "GitUnavailable", retryUnavailable},
		"a large repository":    {&git.TooLargeError{}, "Invalid", -1},
		"files that can't be":   {fmt.Errorf("editing: %w", &contentError{errors.New("other cluster")}), "Invalid", -1},
		"something unexpected":  {errors.New("broken"), "GitUnavailable", retryUnavailable},
		"a wrapped git failure": {fmt.Errorf("pushing: %w", &git.RejectedError{}), "Denied", retryDenied},
	} {
		t.Run(name, func(t *testing.T) {
			outcome := outcomeOf(test.err)
			wait, terminal := reconcile.AsWait(outcome), reconcile.AsTerminal(outcome)
			switch {
			case test.after < 0 && (terminal == nil || terminal.Reason != test.reason || terminal.Message == ""):
				t.Errorf("outcome %#v", outcome)
			case test.after >= 0 && (wait == nil || wait.Reason != test.reason || wait.After != test.after || wait.Message == ""):
				t.Errorf("outcome %#v", outcome)
			}
		})
	}
}
