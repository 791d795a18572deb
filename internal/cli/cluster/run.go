package cluster

import (
	"context"
	"fmt"
	stdio "io"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/drover-dev/drover/internal/base/tracing"
	"github.com/drover-dev/drover/internal/cli/ui"
	"github.com/drover-dev/drover/internal/operate/lifecycle/workflow"
)

// planned is a plan for programs.
type planned struct {
	Command string         `json:"command"`
	Cluster string         `json:"cluster"`
	Phases  []plannedPhase `json:"phases"`
}

type plannedPhase struct {
	Name    string   `json:"name"`
	Summary string   `json:"summary"`
	Changes []string `json:"changes,omitempty"`
}

// ended is what became of a plan, for programs.
type ended struct {
	Command string            `json:"command"`
	Cluster string            `json:"cluster"`
	Seconds float64           `json:"seconds"`
	Phases  []workflow.Result `json:"phases"`
}

// carryOut prints the plan, and unless that is all, does it.
func (c *change) carryOut(ctx context.Context, plan *workflow.Plan) error {
	if c.dryRun {
		return c.output.Print(c.io.Out, describePlan(plan), func(w stdio.Writer) error { return printPlan(w, plan, true) })
	}
	_ = printPlan(c.io.Err, plan, false)
	stop, err := tracing.Start(ctx, tracing.Options{Service: "drover"})
	if err != nil {
		return err
	}
	defer stop()
	ctx, span := otel.Tracer("github.com/drover-dev/drover/internal/cli").Start(ctx, "drover "+plan.Command,
		trace.WithAttributes(attribute.String("cluster.name", plan.Cluster)))
	defer span.End()
	began := time.Now()
	shown := newProgress(c.io, plan)
	results, err := plan.Run(ctx, files(plan.Cluster).Record(), shown.tell)
	shown.end()
	if err != nil {
		return err
	}
	took := time.Since(began)
	if c.output != "" {
		return c.output.Print(c.io.Out, ended{plan.Command, plan.Cluster, took.Seconds(), results}, nil)
	}
	printTimes(c.io.Err, results, took)
	return nil
}

func describePlan(plan *workflow.Plan) planned {
	out := planned{Command: plan.Command, Cluster: plan.Cluster}
	for _, p := range plan.Phases {
		out.Phases = append(out.Phases, plannedPhase{p.Name, p.Summary, p.Changes})
	}
	return out
}

// printPlan lists the phases, with what each will change if that is asked for.
func printPlan(w stdio.Writer, plan *workflow.Plan, changes bool) error { //nolint:revive // The same list, shorter.
	fmt.Fprintf(w, "%s %s, in %d phases:\n", plan.Command, plan.Cluster, len(plan.Phases))
	for i, p := range plan.Phases {
		fmt.Fprintf(w, " %2d  %-28s  %s\n", i+1, p.Name, p.Summary)
		if !changes {
			continue
		}
		for _, line := range p.Changes {
			fmt.Fprintf(w, "       - %s\n", line)
		}
	}
	_, err := fmt.Fprintln(w)
	return err
}

// printTimes says at the end what took how long.
func printTimes(w stdio.Writer, results []workflow.Result, took time.Duration) {
	fmt.Fprintln(w, "\nTimes:")
	for _, r := range results {
		switch {
		case r.Before:
			fmt.Fprintf(w, "  %-28s  %8s  by an earlier run\n", r.Name, seconds(r.Seconds))
		case r.Skipped != "":
			fmt.Fprintf(w, "  %-28s  %8s  %s\n", r.Name, "-", r.Skipped)
		default:
			fmt.Fprintf(w, "  %-28s  %8s\n", r.Name, seconds(r.Seconds))
		}
	}
	fmt.Fprintf(w, "  %-28s  %8s\n", "total", ui.Seconds(took))
}

func seconds(s float64) string { return ui.Seconds(time.Duration(s * float64(time.Second))) }
