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
	"github.com/drover-dev/drover/internal/workload/tool"
)

const (
	// named is how many objects a message names.
	named = 3
	// manyReasons is how much of an object's own words it has.
	manyReasons = 160
	// costLimit stops expressions that take more than a few milliseconds.
	costLimit = 1_000_000
)

// Verdict is what is to be said of one object.
type Verdict struct {
	Title         string
	Ready, Failed bool
	Reason        string
}

// Checker says whether objects are ready. It keeps compiled expressions, of which there are as many as people write, which is few.
type Checker struct {
	env      *cel.Env
	err      error
	compiled sync.Map
}

// Expressions is what health expressions are compiled with, by those who evaluate them and by those who only want to know whether they can
// be.
func Expressions() (*cel.Env, error) {
	return cel.NewEnv(cel.Variable("self", cel.DynType), ext.Strings(), ext.Lists())
}

// NewChecker returns one that has compiled nothing yet.
func NewChecker() *Checker {
	env, err := Expressions()
	return &Checker{env: env, err: err}
}

// Verdict is by the check for the kind of an object if there is one, and otherwise by what is known of all kinds.
func (c *Checker) Verdict(ctx context.Context, live *unstructured.Unstructured, checks []addonsv1.HealthCheck) (Verdict, error) {
	for _, check := range checks {
		if check.APIVersion == live.GetAPIVersion() && check.Kind == live.GetKind() {
			return c.check(ctx, check, live)
		}
	}
	if IsJob(live) {
		return Verdict{Ready: Condition(live, "Complete") == "True", Failed: Condition(live, "Failed") == "True", Reason: "has not completed"}, nil
	}
	result, err := status.Compute(live)
	if err != nil {
		return Verdict{Reason: "has an invalid status"}, nil //nolint:nilerr // it is the object's, and may change
	}
	return Verdict{Ready: result.Status == status.CurrentStatus, Failed: result.Status == status.FailedStatus, Reason: result.Message}, nil
}

// IsJob says that an object is one, which is ready when it has come to an end.
func IsJob(u *unstructured.Unstructured) bool {
	return u.GroupVersionKind().GroupKind().String() == "Job.batch"
}

// Summary names a few of those that are not ready, the failed ones first.
func Summary(verdicts []Verdict) tool.Health {
	health := tool.Health{Ready: true}
	var failed, waiting []string
	for _, v := range verdicts {
		if v.Ready {
			continue
		}
		health.Ready = false
		line := v.Title + ": " + bounded(v.Reason)
		if v.Failed {
			health.Failed = true
			failed = append(failed, line)
		} else {
			waiting = append(waiting, line)
		}
	}
	slices.Sort(failed)
	slices.Sort(waiting)
	all := slices.Concat(failed, waiting)
	health.Message = strings.Join(all[:min(len(all), named)], "; ")
	if more := len(all) - named; more > 0 {
		health.Message += fmt.Sprintf("; and %d more", more)
	}
	return health
}

func bounded(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > manyReasons {
		return strings.ToValidUTF8(s[:manyReasons], "") + "…"
	}
	return s
}

func (c *Checker) check(ctx context.Context, check addonsv1.HealthCheck, live *unstructured.Unstructured) (Verdict, error) {
	v := Verdict{Reason: "does not meet its health expression"}
	var err error
	if v.Ready, err = c.holds(ctx, check.Current, live); err != nil || v.Ready || check.Failed == "" {
		return v, err
	}
	v.Failed, err = c.holds(ctx, check.Failed, live)
	return v, err
}

// holds is false for an expression about fields that are not there yet.
func (c *Checker) holds(ctx context.Context, expression string, live *unstructured.Unstructured) (bool, error) {
	program, err := c.program(expression)
	if err != nil {
		return false, err
	}
	result, _, err := program.ContextEval(ctx, map[string]any{"self": live.Object})
	if err != nil {
		return false, nil //nolint:nilerr // no such field, most of all
	}
	holds, ok := result.Value().(bool)
	return ok && holds, nil
}

func (c *Checker) program(expression string) (cel.Program, error) {
	if known, ok := c.compiled.Load(expression); ok {
		return known.(cel.Program), nil // nothing else is put there
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
