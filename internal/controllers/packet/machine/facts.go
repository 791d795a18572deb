package machine

import (
	"cmp"
	"time"

	"github.com/drover-dev/drover/internal/base/elapsed"
	"github.com/drover-dev/drover/internal/controllers/reconcile"
	"github.com/drover-dev/drover/internal/metal/client"
)

// facts are what the steps gathered. Status is computed from nothing else.
type facts struct {
	// device is the machine's, as the API returned it.
	device *client.Device
	// provisioned means that the machine was active before.
	provisioned bool
	// lost is the ID of a device that no longer exists.
	lost string
	// exhausted means that too many devices failed to order another one.
	exhausted bool
	// misplaced is how the location of the device differs from the wanted one.
	misplaced string
	// cause is why the device failed according to the API, or "".
	cause string
	// session is the result of starting the BGP session; nil if there is nothing to report.
	session *session
	// boot is the result of the userdata; nil if it is unknown or was reported before.
	boot *boot
	// retry is when to retry what did not hold up the other steps; zero if there is nothing.
	retry time.Duration
	// wait is why the steps ended early, or nil.
	wait *reconcile.Wait
}

// session is the result of starting a BGP session.
type session struct{ problem string }

// retryAfter schedules another reconcile; the earliest wins, zero schedules none.
func (f *facts) retryAfter(after time.Duration) {
	if after > 0 && (f.retry == 0 || after < f.retry) {
		f.retry = after
	}
}

// pollAfter is when to read the state of the device again. A new device is polled often in its
// first minute, since local and simulated machines are active within seconds.
func (s *scope) pollAfter() time.Duration {
	if !changing(s.device.State) {
		return reconcile.Jitter(min(cmp.Or(s.retry, s.controller.PollInterval), s.controller.PollInterval))
	}
	return provisioningPoll(s.age())
}

// age is how long ago the device was ordered. A device without a recorded order counts as old.
func (s *scope) age() time.Duration {
	if p := s.machine.Status.Provisioning; p != nil && p.OrderedAt != nil {
		return elapsed.Since(p.OrderedAt.Time, s.controller.Clock.Now())
	}
	return time.Hour
}

func provisioningPoll(age time.Duration) time.Duration {
	switch {
	case age < 15*time.Second:
		return time.Second
	case age < time.Minute:
		return 2 * time.Second
	default:
		return 10 * time.Second
	}
}
