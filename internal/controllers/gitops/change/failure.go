package change

import (
	"errors"
	"time"

	droverv1 "github.com/drover-dev/drover/api/drover/v1alpha1"
	"github.com/drover-dev/drover/internal/base/text"
	"github.com/drover-dev/drover/internal/controllers/reconcile"
	"github.com/drover-dev/drover/internal/git"
)

// Intervals between attempts to commit. A change of the credentials causes another one at once.
const (
	retryUnavailable = 30 * time.Second
	retryDenied      = 5 * time.Minute
)

// contentError means that the files can't be changed as requested, whoever asks.
type contentError struct{ error }

func (e *contentError) Unwrap() error { return e.error }

// outcomeOf returns what the error of a commit means for its change. The errors of package git
// contain no credentials.
func outcomeOf(err error) error {
	message := text.Truncate(text.Sentence(err.Error()))
	switch {
	case isOneOf[*contentError](err), isOneOf[*git.TooLargeError](err):
		return &reconcile.Terminal{Reason: droverv1.GitInvalidReason, Message: message}
	case isOneOf[*git.AuthenticationError](err), isOneOf[*git.IdentityError](err), isOneOf[*git.NotFoundError](err),
		isOneOf[*git.RejectedError](err), isOneOf[*git.InvalidError](err):
		return &reconcile.Wait{Reason: droverv1.GitDeniedReason, Message: message, After: retryDenied}
	default: // unreachable, not a Git server at the moment, overtaken by others, or out of time
		return &reconcile.Wait{Reason: droverv1.GitUnavailableReason, Message: message, After: retryUnavailable}
	}
}

// isOneOf reports whether an error is of a type, or wraps one that is.
func isOneOf[T error](err error) bool {
	var target T
	return errors.As(err, &target)
}

// denied returns the outcome of a change whose repository isn't open to it. A watch notices when
// that changes.
func denied(message string) error {
	return &reconcile.Wait{Reason: droverv1.GitDeniedReason, Message: text.Truncate(text.Sentence(message))}
}
