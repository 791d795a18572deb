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
	"github.com/drover-dev/drover/internal/operate/lifecycle/phase"
)

// planned is the JSON of a plan.
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

// ended is the JSON of a finished run.
type ended struct {
	Command string         `json:"command"`
	Cluster string         `json:"cluster"`
	Seconds float64        `json:"seconds"`
	Phases  []phase.Result `json:"phases"`
}

// execute prints the plan and runs it, unless this is a dry run.
func (c *change) execute(ctx context.Context, plan *phase.Plan) error {
	if c.dryRun {
		return c.output.Print(c.io.Out, describePlan(plan), func(w stdio.Writer) error { return printPlan(w, plan, phaseWithChanges) })
	}
	_ = printPlan(c.io.Err, plan, phaseLine)
	stop, err := tracing.Start(ctx, tracing.Options{Service: "drover"})
	if err != nil {
		return err
	}
	defer stop()
	ctx, span := otel.Tracer("github.com/drover-dev/drover/internal/cli").Start(ctx, "drover "+plan.Command,
		trace.WithAttributes(attribute.String("cluster.name", plan.Cluster)))
	defer span.End()
	began := time.Now()
	shown := ui.NewPhases(c.io, len(plan.Phases))
	results, err := plan.Run(ctx, files(plan.Cluster).Record(), show(shown))
	shown.Close()
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

func describePlan(plan *phase.Plan) planned {
	out := planned{Command: plan.Command, Cluster: plan.Cluster}
	for _, p := range plan.Phases {
		out.Phases = append(out.Phases, plannedPhase{p.Name, p.Summary, p.Changes})
	}
	return out
}

// printPlan lists the phases, each as format says.
func printPlan(w stdio.Writer, plan *phase.Plan, format func(number int, p *phase.Phase) string) error {
	fmt.Fprintf(w, "%s %s, in %d phases:\n", plan.Command, plan.Cluster, len(plan.Phases))
	for i := range plan.Phases {
		fmt.Fprint(w, format(i+1, &plan.Phases[i]))
	}
	_, err := fmt.Fprintln(w)
	return err
}

// phaseLine is a phase on one line.
func phaseLine(number int, p *phase.Phase) string {
	return fmt.Sprintf(" %2d  %-28s  %s\n", number, p.Name, p.Summary)
}

// phaseWithChanges is a phase with what it will change.
func phaseWithChanges(number int, p *phase.Phase) string {
	out := phaseLine(number, p)
	for _, line := range p.Changes {
		out += fmt.Sprintf("       - %s\n", line)
	}
	return out
}

// printTimes prints how long each phase took.
func printTimes(w stdio.Writer, results []phase.Result, took time.Duration) {
	fmt.Fprintln(w, "\nTimes:")
	for _, r := range results {
		switch {
		case r.Before:
			fmt.Fprintf(w, "  %-28s  %8s  done by an earlier run\n", r.Name, seconds(r.Seconds))
		case r.Skipped != "":
			fmt.Fprintf(w, "  %-28s  %8s  %s\n", r.Name, "-", r.Skipped)
		default:
			fmt.Fprintf(w, "  %-28s  %8s\n", r.Name, seconds(r.Seconds))
		}
	}
	fmt.Fprintf(w, "  %-28s  %8s\n", "total", ui.Seconds(took))
}

func seconds(s float64) string { return ui.Seconds(time.Duration(s * float64(time.Second))) }
