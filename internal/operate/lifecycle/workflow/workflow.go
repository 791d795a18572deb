// Package workflow runs the phases of create, upgrade and delete: it says beforehand what will be done, records each phase when it is done,
// goes on where an earlier run ended, and tells what happens meanwhile.
//
// What a phase does is given to it; it knows no cluster and no API server itself. Phases can be repeated: one that was cut short, by an
// error, by Ctrl-C or by a lost machine, runs again from its beginning. Start with New and Plan.Run.
package workflow

import (
	"context"
	"fmt"
	"slices"
)

// Phase is one step of a workflow.
type Phase struct {
	// Name is one of the names in this package.
	Name string
	// Summary says in a few words what is done.
	Summary string
	// Changes are what it will change, a line each, for those who ask before.
	Changes []string
	// Run does it. It may be called again after it was cut short anywhere. A Skip says that there is nothing to do here, a Finish that
	// there is nothing to do in this and all later phases.
	Run func(context.Context, *Progress) error
	// Repeat has the phase run also if it is recorded as done: it looks at the world, which may be another by now.
	Repeat bool
	// Fixes means that the spec can't be another one once the phase is done.
	Fixes bool
}

// Plan is what one command does with one cluster.
type Plan struct {
	// Command is what the user asks for, such as "create cluster".
	Command string
	Cluster string
	Phases  []Phase
	// Fingerprint stands for what the plan was made from. A run does not go on where one with another fingerprint ended.
	Fingerprint string
	// Again is what to type to go on after an interruption.
	Again string
	// Supersedes has the plan take over from an unfinished run of another command, as deleting does.
	Supersedes bool
}

// New returns the plan of a command: exactly the phases of its list, in that order, each done as the given ones say. A phase that nobody
// gave or that is not in the list is a mistake of the caller.
func New(command Command, cluster string, given ...Phase) (*Plan, error) {
	plan := &Plan{Command: command.String(), Cluster: cluster, Supersedes: command.Verb == Delete}
	names := command.Phases()
	for _, p := range given {
		if !slices.Contains(names, p.Name) {
			return nil, fmt.Errorf("%s has no phase %q", command, p.Name)
		}
	}
	for _, name := range names {
		i := slices.IndexFunc(given, func(p Phase) bool { return p.Name == name })
		if i < 0 || given[i].Run == nil {
			return nil, fmt.Errorf("nobody does phase %q of %s", name, command)
		}
		phase := given[i]
		if phase.Summary == "" {
			phase.Summary = summaries[name]
		}
		plan.Phases = append(plan.Phases, phase)
	}
	return plan, nil
}
