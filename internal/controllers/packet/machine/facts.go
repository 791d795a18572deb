package machine

import (
	"cmp"
	"time"

	"github.com/drover-dev/drover/internal/controllers/packet/outcome"
	"github.com/drover-dev/drover/internal/metal/client"
)

// facts are what the steps of a reconcile found out. Status is made from them and nothing else.
type facts struct {
	// device is the machine's own, as the API tells it.
	device *client.Device
	// provisioned says that the machine was up before.
	provisioned bool
	// gone is the id of a device that was there and is not any more.
	gone string
	// exhausted says that devices failed too often to order another one.
	exhausted bool
	// misplaced says how the device is not where it should be.
	misplaced string
	// cause is why the device failed, in the API's words, or "".
	cause string
	// session is what became of the BGP session; nil if there is to be none.
	session *session
	// boot is how the machine fared with its userdata; nil if that is not known, or was known before.
	boot *boot
	// retry is when to try again what did not hold up the other steps; zero if there is nothing.
	retry time.Duration
	// wait is why the steps ended early.
	wait *outcome.Wait
}

// session is the state of a BGP session.
type session struct{ problem string }

// again asks for another look; the earliest wins, zero asks for none.
func (f *facts) again(after time.Duration) {
	if after > 0 && (f.retry == 0 || after < f.retry) {
		f.retry = after
	}
}

// pollAfter is when to look at the device again. A device that comes up is looked at often in its first minute, since machines that are
// not metal are up in seconds.
func (s *scope) pollAfter() time.Duration {
	if !coming(s.device.State) {
		return outcome.Jitter(min(cmp.Or(s.retry, s.controller.PollInterval), s.controller.PollInterval))
	}
	return provisioningPoll(s.age())
}

// age is how long ago the device was ordered. One that was not ordered from here, or is forgotten to have been, counts as old.
func (s *scope) age() time.Duration {
	if p := s.machine.Status.Provisioning; p != nil && p.OrderedAt != nil {
		return s.controller.Clock.Since(p.OrderedAt.Time)
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
