package metal

import (
	"time"

	"github.com/drover-dev/drover/internal/base/elapsed"
	"github.com/drover-dev/drover/internal/metal/driver"
	"github.com/drover-dev/drover/internal/metal/store"
)

// step is the next action for a device.
type step string

const (
	stepNothing   step = "nothing"
	stepWait      step = "wait"
	stepRemove    step = "remove"
	stepTerminate step = "terminate"
	stepFail      step = "fail"
	stepReinstall step = "reinstall"
	stepEnsure    step = "ensure"
)

// choice is a step with its parameters.
type choice struct {
	step  step
	power driver.Power
	wait  time.Duration
	// upgrade is the Kubernetes version to upgrade the machine to, or empty.
	upgrade string
}

// choose decides the next step for a device. It depends only on the record, so a restarted process
// continues where the last one stopped. A nil device means a leftover machine of the driver.
func choose(d *store.Device, now time.Time) choice {
	switch {
	case d == nil || d.Deleting:
		return choice{step: stepRemove}
	case !d.TerminationTime.IsZero() && !now.Before(d.TerminationTime):
		return choice{step: stepTerminate}
	case now.Before(d.HoldUntil) && !elapsed.Ahead(d.Created, now):
		return choice{step: stepWait, wait: d.HoldUntil.Sub(now)}
	case d.Doomed && d.State != StateFailed:
		return choice{step: stepFail}
	case d.State == StateFailed:
		return choice{step: stepNothing}
	case d.Reinstall:
		return choice{step: stepReinstall, wait: untilTermination(d, now)}
	case d.Cycle:
		return choice{step: stepEnsure, power: driver.Off, wait: untilTermination(d, now)}
	default:
		return choice{step: stepEnsure, power: driver.Power(d.Power), wait: untilTermination(d, now), upgrade: pendingUpgrade(d)}
	}
}

func untilTermination(d *store.Device, now time.Time) time.Duration {
	if d.TerminationTime.IsZero() {
		return 0
	}
	return d.TerminationTime.Sub(now)
}
