package reconcile

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var errBroken = errors.New("broken")

func TestRunStopsAtTheFirstError(t *testing.T) {
	for name, tc := range map[string]struct {
		err  error
		want string
		ran  int
	}{
		"no error":                 {nil, "<nil>", 2},
		"a failure names the step": {errBroken, "ordering the device: broken", 1},
		"a wait is left as it is":  {&Wait{Message: "waiting for the cluster"}, "waiting for the cluster", 1},
		"a terminal error as well": {&Terminal{Message: "no such plan"}, "no such plan", 1},
		"stop":                     {Stop, Stop.Error(), 1},
	} {
		t.Run(name, func(t *testing.T) {
			ran := 0
			step := func(err error) func(context.Context, *int) error {
				return func(_ context.Context, ran *int) error { *ran++; return err }
			}
			err := Run(t.Context(), &ran, []Step[*int]{{"ordering the device", step(tc.err)}, {"booting", step(nil)}})
			if got := fmt.Sprint(err); got != tc.want || ran != tc.ran {
				t.Errorf("got %q after %d steps, want %q after %d", got, ran, tc.want, tc.ran)
			}
		})
	}
}

func TestResult(t *testing.T) {
	machines := schema.GroupResource{Resource: "machines"}
	for name, tc := range map[string]struct {
		err      error
		min, max time.Duration
		failed   bool
	}{
		"success":         {nil, time.Minute, time.Minute, false},
		"stop":            {Stop, time.Minute, time.Minute, false},
		"wait for event":  {&Wait{}, 0, 0, false},
		"wait for time":   {&Wait{After: 10 * time.Second}, 10 * time.Second, 12 * time.Second, false},
		"wrapped wait":    {fmt.Errorf("x: %w", &Wait{After: time.Second}), time.Second, 2 * time.Second, false},
		"terminal":        {&Terminal{}, 0, 0, false},
		"conflict":        {fmt.Errorf("x: %w", apierrors.NewConflict(machines, "m", errBroken)), ConflictRetry, ConflictRetry, false},
		"already exists":  {apierrors.NewAlreadyExists(machines, "m"), ConflictRetry, ConflictRetry, false},
		"not found fails": {apierrors.NewNotFound(machines, "m"), 0, 0, true},
		"failure":         {errBroken, 0, 0, true},
		"a conflict beside a wait comes first": {
			errors.Join(&Wait{After: time.Hour}, apierrors.NewConflict(machines, "m", errBroken)), ConflictRetry, ConflictRetry, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Result(tc.err, time.Minute)
			if (err != nil) != tc.failed || got.RequeueAfter < tc.min || got.RequeueAfter > tc.max {
				t.Errorf("got %v, %v", got, err)
			}
		})
	}
}
