// Package failure maps failed requests to the Packet API to waits: what to tell the user, and when
// to retry. All controllers of the provider share the mapping, so that the same failure reads the
// same everywhere.
//
// No failure of the API is terminal, since whatever it rejects now it may accept later. Errors that
// don't come from the API or its credentials pass unchanged. Start with Step and Wait.
package failure

import (
	"context"
	"errors"
	"strings"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	infrav1 "github.com/drover-dev/drover/api/infrastructure/v1beta1"
	"github.com/drover-dev/drover/internal/base/text"
	"github.com/drover-dev/drover/internal/controllers/reconcile"
	"github.com/drover-dev/drover/internal/metal/access"
	"github.com/drover-dev/drover/internal/metal/client"
)

// When to retry, by the kind of failure.
const (
	afterUnknown     = 5 * time.Second
	afterUnavailable = 15 * time.Second
	afterBusy        = 10 * time.Second
	afterCapacity    = time.Minute
	afterRejection   = 5 * time.Minute
	afterCredentials = 15 * time.Second // the Secret is read again; the client itself spares a rejected token
)

// maxMessage bounds a message, most of which is the API's.
const maxMessage = 512

// Step returns a step that ends in a wait if one of its requests to the Packet API fails.
func Step[S any](doing string, run func(context.Context, S) error) reconcile.Step[S] {
	return reconcile.Step[S]{Doing: doing, Run: func(ctx context.Context, s S) error {
		err := run(ctx, s)
		wait := Wait(doing, err)
		if wait == nil {
			return err
		}
		ctrl.LoggerFrom(ctx).V(2).Info("Request to the Packet API failed", "step", doing, "error", err.Error())
		return wait
	}}
}

// Wait returns the wait that an error amounts to, or nil for errors that don't come from the Packet
// API or its credentials.
func Wait(doing string, err error) *reconcile.Wait {
	if problem, ok := access.IsProblem(err); ok {
		return &reconcile.Wait{Reason: infrav1.CredentialsInvalidReason, Message: problem, After: afterCredentials}
	}
	var e *client.Error
	if !errors.As(err, &e) {
		return nil
	}
	reason, after := explain(e)
	return &reconcile.Wait{Reason: reason, Message: Truncate(capitalize(doing) + " failed: " + e.Reason()), After: after}
}

// IsReason reports whether a reason is that of a failed request.
func IsReason(reason string) bool {
	switch reason {
	case infrav1.APIRateLimitedReason, infrav1.InsufficientCapacityReason, infrav1.QuotaExceededReason,
		infrav1.InvalidSpecReason, infrav1.CredentialsInvalidReason, infrav1.APIUnavailableReason:
		return true
	default:
		return false
	}
}

func explain(e *client.Error) (reason string, after time.Duration) {
	switch e.Kind {
	case client.RateLimited:
		return infrav1.APIRateLimitedReason, e.After
	case client.Capacity:
		return infrav1.InsufficientCapacityReason, afterCapacity
	case client.Quota:
		return infrav1.QuotaExceededReason, afterRejection
	case client.Invalid:
		return infrav1.InvalidSpecReason, afterRejection
	case client.Unauthorized, client.Forbidden:
		return infrav1.CredentialsInvalidReason, afterCredentials
	case client.Busy:
		return infrav1.APIUnavailableReason, afterBusy
	case client.UnknownOutcome:
		return infrav1.APIUnavailableReason, afterUnknown
	default:
		return infrav1.APIUnavailableReason, afterUnavailable
	}
}

// Inconclusive reports whether a wait is about access to the API. It says nothing about the object
// then: whatever was known of it still holds.
func Inconclusive(w *reconcile.Wait) bool {
	switch w.Reason {
	case infrav1.APIUnavailableReason, infrav1.APIRateLimitedReason, infrav1.CredentialsInvalidReason:
		return true
	default:
		return false
	}
}

// Truncate bounds text of the API or of a machine for a condition.
func Truncate(message string) string { return text.TruncateTo(message, maxMessage) }

// capitalize starts a sentence with what a step does, which begins with an ASCII letter.
func capitalize(doing string) string {
	if doing == "" {
		return ""
	}
	return strings.ToUpper(doing[:1]) + doing[1:]
}
