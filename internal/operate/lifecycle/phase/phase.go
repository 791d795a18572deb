// Package phase runs the phases of a command: it records each phase when it is done, resumes an
// interrupted run at the phase it was in, and reports what happens as it happens.
//
// It owns the checkpoint file and the lock of a run. It knows neither phases nor clusters: whoever
// makes a Plan declares them. Phases must be repeatable: one that was cut short by an error, by
// Ctrl-C or by a lost machine runs again from its beginning. Start with Plan and Plan.Run.
package phase

import (
	"context"
	"fmt"
)

// Phase is one phase of a plan.
type Phase struct {
	// Name identifies the phase in output, checkpoints and traces. It is unique in its plan.
	Name string
	// Summary says in a few words what the phase does.
	Summary string
	// Changes lists what the phase will change, one line each, for --dry-run.
	Changes []string
	// Run does the work. It may be called again after it was cut short anywhere. It returns a Skip
	// if this phase has nothing to do, and a Finish if no later phase has anything to do either.
	Run func(context.Context, *Progress) error
	// Repeat runs the phase again in a resumed run, because it observes what may have changed.
	Repeat bool
	// Fixes means that the spec can't change any more once the phase is done.
	Fixes bool
}

// Plan is what one command does to one cluster.
type Plan struct {
	// Command is the command without the program, such as "create cluster".
	Command string
	Cluster string
	Phases  []Phase
	// Fingerprint identifies the input that the plan was made from. A run does not resume one with
	// another fingerprint.
	Fingerprint string
	// Again is the command line that resumes an interrupted run.
	Again string
	// Supersedes lets the plan replace an unfinished run of another command, as deleting does.
	Supersedes bool
}

// Names returns the names of the phases, in order.
func (p *Plan) Names() []string {
	out := make([]string, 0, len(p.Phases))
	for i := range p.Phases {
		out = append(out, p.Phases[i].Name)
	}
	return out
}

// check rejects a plan that could not be resumed.
func (p *Plan) check() error {
	seen := map[string]bool{}
	for i := range p.Phases {
		switch phase := &p.Phases[i]; {
		case phase.Name == "" || phase.Run == nil:
			return fmt.Errorf("phase %d (%q) of %s is incomplete", i+1, phase.Name, p.Command)
		case seen[phase.Name]:
			return fmt.Errorf("phase %q occurs twice in %s", phase.Name, p.Command)
		default:
			seen[phase.Name] = true
		}
	}
	return nil
}
