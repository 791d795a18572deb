package cluster

import (
	"github.com/drover-dev/drover/internal/cli/ui"
	"github.com/drover-dev/drover/internal/operate/lifecycle/phase"
)

// show returns a function that shows the events of a run.
func show(p *ui.Progress) func(phase.Event) {
	return func(e phase.Event) {
		switch e.Status {
		case phase.Started:
			p.Start(e.Phase)
		case phase.Waiting:
			p.Activity(e.Detail)
		case phase.Note:
			p.Note(e.Detail)
		case phase.Done:
			p.Done(e.Phase, e.Took)
		case phase.Before:
			p.Earlier(e.Phase)
		case phase.Skipped:
			p.Skipped(e.Phase, e.Detail)
		case phase.Failed, phase.Interrupted:
			p.Failed(e.Phase, e.Took)
		}
	}
}
