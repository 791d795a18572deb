package release

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	"github.com/drover-dev/drover/internal/test/jumpclock"
	"github.com/drover-dev/drover/internal/workload/tool"
)

// jumps are what happens to a clock; it may be set to what it shows, too.
var jumps = []time.Duration{0, 365 * 24 * time.Hour, -365 * 24 * time.Hour}

// observe returns what a controller decides about a release whose settled facts changed.
func observe(c *Controller, r *addonsv1.HelmReleaseProxy, change func(*facts)) choice {
	f := settled()
	f.now, f.spec, f.status = c.Clock.Now(), &r.Spec, &r.Status
	change(&f)
	(&visit{Controller: c, release: r}).gatherAges(&f)
	return decide(f)
}

func TestClockDoesNotEndTimeouts(t *testing.T) {
	for _, jump := range jumps {
		clock := jumpclock.New(noon)
		c := &Controller{Clock: clock}
		deleted := &addonsv1.HelmReleaseProxy{ObjectMeta: metav1.ObjectMeta{Name: "deleted", DeletionTimestamp: &metav1.Time{Time: noon}}}
		deleted.Status = *settled().status
		deleted.Spec.Options.Uninstall = &addonsv1.HelmUninstallOptions{GiveUpAfter: &metav1.Duration{Duration: time.Hour}}
		unready := &addonsv1.HelmReleaseProxy{ObjectMeta: metav1.ObjectMeta{Name: "unready"}}
		unready.Status = *settled().status
		unready.Status.Applied.At = &metav1.Time{Time: noon}
		unready.Spec.Options.Atomic, unready.Spec.Options.Timeout = true, &metav1.Duration{Duration: time.Hour}
		removal := func() choice {
			return observe(c, deleted, func(f *facts) { f.clusterProblem = &problem{reason: addonsv1.NotAvailableReason} })
		}
		health := func() choice { return observe(c, unready, func(f *facts) { f.known.health = &tool.Health{} }) }
		removal()
		health()
		clock.Jump(jump)
		clock.Pass(time.Hour - time.Second)
		if got := removal(); got.do != nothing || got.after != time.Second {
			t.Errorf("after a jump of %s, an unreachable cluster is not waited for: %+v", jump, got)
		}
		if got := health(); got != (choice{do: nothing, after: time.Second}) {
			t.Errorf("after a jump of %s, unready objects are not waited for: %+v", jump, got)
		}
		clock.Pass(time.Second)
		if got := removal(); got.do != abandon {
			t.Errorf("after a jump of %s, an unreachable cluster is not abandoned: %+v", jump, got)
		}
		if got := health(); got.do != revert {
			t.Errorf("after a jump of %s, unready objects are not reverted: %+v", jump, got)
		}
	}
}

func TestClockDoesNotDelayRetries(t *testing.T) {
	for _, jump := range jumps[1:] {
		f := settled()
		f.fingerprint = "g"
		failedBefore(&f, jump, addonsv1.FailedAttempt{Fingerprint: "g", Failures: 1})
		if got := decide(f); got.do != apply {
			t.Errorf("after a jump of %s, a failed upgrade is not repeated: %+v", jump, got)
		}
		f.deleting = noon
		failedBefore(&f, jump, addonsv1.FailedAttempt{Fingerprint: f.subject(), Failures: 1, Terminal: true})
		if got := decide(f); got.do != remove {
			t.Errorf("after a jump of %s, a failed removal is not repeated: %+v", jump, got)
		}
	}
}
