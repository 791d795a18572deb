package objects

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/ext"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	"github.com/drover-dev/drover/internal/base/text"
	"github.com/drover-dev/drover/internal/workload/tool"
)

const (
	// maxNamed is how many objects a message names.
	maxNamed = 3
	// maxReasonLength limits an object's own message.
	maxReasonLength = 160
	// costLimit stops expressions that take more than a few milliseconds.
	costLimit = 1_000_000
)

// Verdict is the readiness of one object.
type Verdict struct {
	Title         string
	Ready, Failed bool
	Reason        string
}

// Checker checks whether objects are ready. It caches compiled expressions.
type Checker struct {
	env      *cel.Env
	err      error
	compiled sync.Map
}

// Expressions returns the environment that health expressions are compiled in.
func Expressions() (*cel.Env, error) {
	return cel.NewEnv(cel.Variable("self", cel.DynType), ext.Strings(), ext.Lists())
}

// NewChecker returns a Checker with an empty cache.
func NewChecker() *Checker {
	env, err := Expressions()
	return &Checker{env: env, err: err}
}

// Evaluate applies the health check for the object's kind, or the generic rules if there is none.
func (c *Checker) Evaluate(ctx context.Context, live *unstructured.Unstructured, checks []addonsv1.HealthCheck) (Verdict, error) {
	for _, check := range checks {
		if check.APIVersion == live.GetAPIVersion() && check.Kind == live.GetKind() {
			return c.evaluate(ctx, check, live)
		}
	}
	if IsJob(live) {
		return Verdict{Ready: Condition(live, "Complete") == "True", Failed: Condition(live, "Failed") == "True", Reason: "has not completed"}, nil
	}
	result, err := status.Compute(live)
	if err != nil {
		return Verdict{Reason: "has an invalid status"}, nil //nolint:nilerr // the status may become valid
	}
	return Verdict{Ready: result.Status == status.CurrentStatus, Failed: result.Status == status.FailedStatus, Reason: result.Message}, nil
}

// IsJob reports whether an object is a Job, which is ready once it has completed.
func IsJob(u *unstructured.Unstructured) bool {
	return u.GroupVersionKind().GroupKind().String() == "Job.batch"
}

// Summary summarizes verdicts and names the first objects that are not ready, failed ones first.
func Summary(verdicts []Verdict) tool.Health {
	health := tool.Health{Ready: true}
	var failed, waiting []string
	for _, v := range verdicts {
		if v.Ready {
			continue
		}
		health.Ready = false
		line := v.Title + ": " + text.TruncateTo(strings.Join(strings.Fields(v.Reason), " "), maxReasonLength)
		if v.Failed {
			health.Failed = true
			failed = append(failed, line)
		} else {
			waiting = append(waiting, line)
		}
	}
	slices.Sort(failed)
	slices.Sort(waiting)
	health.Message = text.Clauses(slices.Concat(failed, waiting), maxNamed)
	return health
}

func (c *Checker) evaluate(ctx context.Context, check addonsv1.HealthCheck, live *unstructured.Unstructured) (Verdict, error) {
	v := Verdict{Reason: "does not meet its health expression"}
	var err error
	if v.Ready, err = c.holds(ctx, check.Current, live); err != nil || v.Ready || check.Failed == "" {
		return v, err
	}
	v.Failed, err = c.holds(ctx, check.Failed, live)
	return v, err
}

// holds is false for an expression about fields that are not set yet.
func (c *Checker) holds(ctx context.Context, expression string, live *unstructured.Unstructured) (bool, error) {
	program, err := c.program(expression)
	if err != nil {
		return false, err
	}
	result, _, err := program.ContextEval(ctx, map[string]any{"self": live.Object})
	if err != nil {
		return false, nil //nolint:nilerr // usually a field that is not set yet
	}
	holds, ok := result.Value().(bool)
	return ok && holds, nil
}

func (c *Checker) program(expression string) (cel.Program, error) {
	if known, ok := c.compiled.Load(expression); ok {
		return known.(cel.Program), nil // only programs are stored
	}
	if c.err != nil {
		return nil, c.err
	}
	ast, issues := c.env.Compile(expression)
	if issues.Err() != nil {
		return nil, &tool.TerminalError{Err: fmt.Errorf("reading health expression %q: %w", expression, issues.Err())}
	}
	program, err := c.env.Program(ast, cel.CostLimit(costLimit), cel.InterruptCheckFrequency(100))
	if err != nil {
		return nil, &tool.TerminalError{Err: fmt.Errorf("reading health expression %q: %w", expression, err)}
	}
	c.compiled.Store(expression, program)
	return program, nil
}
