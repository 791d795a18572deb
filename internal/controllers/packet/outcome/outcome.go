// Package outcome says what a controller does about a request that did not succeed: what to tell the user, and when to try again.
//
// It owns that mapping for clusters and machines alike, so that the same failure reads the same everywhere. There is no final outcome:
// a step either waits or, for errors that are ours and not the API's, returns the error. Start with Of.
package outcome

import (
	"errors"
	"math/rand/v2"
	"strings"
	"time"

	infrav1 "github.com/drover-dev/drover/api/infrastructure/v1beta1"
	"github.com/drover-dev/drover/internal/metal/access"
	"github.com/drover-dev/drover/internal/metal/client"
)

// When to try again, for each kind of failure.
const (
	afterUnknown     = 5 * time.Second
	afterUnavailable = 15 * time.Second
	afterBusy        = 10 * time.Second
	afterCapacity    = time.Minute
	afterRefusal     = 5 * time.Minute
	afterCredentials = 15 * time.Second // the Secret is read again; a token that was refused is not tried again so soon
)

// maxMessage bounds what of the API's words gets into a condition.
const maxMessage = 512

// Wait is a step that could not be finished now.
type Wait struct {
	// Reason and Message are for a condition.
	Reason, Message string
	// After is when to look again; zero if an event will tell.
	After time.Duration
}

// Of explains a failure. It returns nil for errors that don't come from the Packet API or its credentials; those are for the caller to
// return.
func Of(doing string, err error) *Wait {
	if problem, ok := access.IsProblem(err); ok {
		return &Wait{infrav1.CredentialsInvalidReason, problem, afterCredentials}
	}
	var e *client.Error
	if !errors.As(err, &e) {
		return nil
	}
	reason, after := explain(e)
	return &Wait{reason, Bound(capitalize(doing) + " failed: " + e.Reason()), after}
}

func explain(e *client.Error) (string, time.Duration) {
	switch e.Kind {
	case client.RateLimited:
		return infrav1.APIRateLimitedReason, e.After
	case client.Capacity:
		return infrav1.InsufficientCapacityReason, afterCapacity
	case client.Quota:
		return infrav1.QuotaExceededReason, afterRefusal
	case client.Invalid:
		return infrav1.InvalidSpecReason, afterRefusal
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

// Silent says that the wait is about the API, not about what it was asked for: nothing that was known has changed.
func (w *Wait) Silent() bool {
	switch w.Reason {
	case infrav1.APIUnavailableReason, infrav1.APIRateLimitedReason, infrav1.CredentialsInvalidReason:
		return true
	default:
		return false
	}
}

// capitalize turns what a step does, which starts with a letter of ASCII, into the beginning of a sentence.
func capitalize(doing string) string {
	if doing == "" {
		return ""
	}
	return strings.ToUpper(doing[:1]) + doing[1:]
}

// Bound makes words of others short enough for a condition. It drops the rest of a character that it would cut in two.
func Bound(message string) string {
	if len(message) > maxMessage {
		return strings.ToValidUTF8(message[:maxMessage], "") + "…"
	}
	return message
}

// Jitter spreads those who wait for the same time, so that a fleet does not come back all at once.
func Jitter(d time.Duration) time.Duration {
	if d <= 0 {
		return 0
	}
	return d + time.Duration(rand.Int64N(int64(d)/5+1)) //nolint:gosec // spreading load needs no secret randomness
}
