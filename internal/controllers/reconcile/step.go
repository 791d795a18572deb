package reconcile

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
)

// ConflictRetry is how long a reconcile waits after it lost a race for an object. The watch event
// of the winning write usually comes first.
const ConflictRetry = 100 * time.Millisecond

// Step is one part of a reconcile of S, the controller's scope.
type Step[S any] struct {
	// Doing is a present participle with its object, such as "ordering the device".
	Doing string
	// Run returns nil if the next step may follow.
	Run func(context.Context, S) error
}

// Run takes the steps in order and returns the first error, prefixed with what the step was doing
// unless it is an outcome (Wait, Terminal, Stop).
func Run[S any](ctx context.Context, s S, steps []Step[S]) error {
	for _, step := range steps {
		err := step.Run(ctx, s)
		switch {
		case err == nil:
			continue
		case isOutcome(err):
			return err
		case step.Doing == "":
			return err
		default:
			return fmt.Errorf("%s: %w", step.Doing, err)
		}
	}
	return nil
}

// Stop ends a reconcile early because nothing is left to do.
var Stop = errors.New("nothing left to do") //nolint:errname,revive,staticcheck // an outcome, not a failure

// Wait ends a reconcile that can't continue yet.
type Wait struct { //nolint:errname // an outcome, not a failure
	// Reason and Message are for a condition.
	Reason, Message string
	// After is when to retry; zero if an event will trigger the next reconcile.
	After time.Duration
}

// Error implements error.
func (w *Wait) Error() string { return w.Message }

// Terminal ends a reconcile that can't succeed until the user changes something.
type Terminal struct { //nolint:errname // an outcome, not a failure
	// Reason and Message are for a condition.
	Reason, Message string
}

// Error implements error.
func (t *Terminal) Error() string { return t.Message }

// AsWait returns the Wait in an error, nil if there is none.
func AsWait(err error) *Wait {
	var w *Wait
	errors.As(err, &w)
	return w
}

// AsTerminal returns the Terminal in an error, nil if there is none.
func AsTerminal(err error) *Terminal {
	var t *Terminal
	errors.As(err, &t)
	return t
}

func isOutcome(err error) bool {
	return errors.Is(err, Stop) || AsWait(err) != nil || AsTerminal(err) != nil
}

// Result maps the outcome of a reconcile to what the queue does next:
//
//	nil, Stop              next reconcile after next, or on an event
//	Wait                   after Wait.After, spread by up to a fifth, or on an event
//	Terminal               on an event
//	conflict, exists       soon and silently: someone else's write came first
//	anything else          with back-off, logged
func Result(err error, next time.Duration) (ctrl.Result, error) {
	switch {
	case err == nil, errors.Is(err, Stop):
		return ctrl.Result{RequeueAfter: next}, nil
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err):
		return ctrl.Result{RequeueAfter: ConflictRetry}, nil
	case AsWait(err) != nil:
		return ctrl.Result{RequeueAfter: Jitter(AsWait(err).After)}, nil //nolint:nilerr // a condition reports it
	case AsTerminal(err) != nil:
		return ctrl.Result{}, nil //nolint:nilerr // a condition reports it
	default:
		return ctrl.Result{}, err
	}
}

// Jitter adds up to a fifth to a delay, so that a fleet doesn't retry all at once.
func Jitter(d time.Duration) time.Duration {
	if d <= 0 {
		return 0
	}
	return d + time.Duration(rand.Int64N(int64(d)/5+1)) //nolint:gosec // spreading load needs no secret randomness
}
