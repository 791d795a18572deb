package helm

import (
	"context"
	"fmt"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/ext"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	"github.com/drover-dev/drover/internal/addons/tool"
)

// costLimit stops expressions that take more than a few milliseconds.
const costLimit = 1_000_000

// programs are compiled expressions. There are as many as people write, which is few.
type programs struct {
	env      *cel.Env
	err      error
	compiled sync.Map
}

func newPrograms() *programs {
	env, err := cel.NewEnv(cel.Variable("self", cel.DynType), ext.Strings(), ext.Lists())
	return &programs{env: env, err: err}
}

func (p *programs) program(expression string) (cel.Program, error) {
	if known, ok := p.compiled.Load(expression); ok {
		return known.(cel.Program), nil //nolint:forcetypeassert // nothing else is put there
	}
	if p.err != nil {
		return nil, p.err
	}
	ast, issues := p.env.Compile(expression)
	if issues.Err() != nil {
		return nil, &tool.Terminal{Err: fmt.Errorf("reading health expression %q: %w", expression, issues.Err())}
	}
	program, err := p.env.Program(ast, cel.CostLimit(costLimit), cel.InterruptCheckFrequency(100))
	if err != nil {
		return nil, &tool.Terminal{Err: fmt.Errorf("reading health expression %q: %w", expression, err)}
	}
	p.compiled.Store(expression, program)
	return program, nil
}

func (p *programs) check(ctx context.Context, check addonsv1.HealthCheck, live *unstructured.Unstructured) (verdict, error) {
	v := verdict{reason: "does not meet its health expression"}
	var err error
	if v.ready, err = p.holds(ctx, check.Current, live); err != nil || v.ready || check.Failed == "" {
		return v, err
	}
	v.failed, err = p.holds(ctx, check.Failed, live)
	return v, err
}

// holds is false for an expression about fields that are not there yet.
func (p *programs) holds(ctx context.Context, expression string, live *unstructured.Unstructured) (bool, error) {
	program, err := p.program(expression)
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
