package lifecycle

import (
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// startGrace is how long an API server may deny requests after it has started: it answers before it
// has read its roles, and until then it allows nothing.
const startGrace = time.Minute

// outage distinguishes an API server that is down or starting from one that denies access.
type outage struct {
	// down is whether no request has been allowed since one was not answered.
	down bool
	// answers is since when the API server answers again.
	answers time.Time
}

// observe reports whether the error of a request is temporary, and remembers what it says about the
// API server.
func (o *outage) observe(err error, now time.Time) bool {
	var answer apierrors.APIStatus
	switch {
	case err != nil && !errors.As(err, &answer):
		*o = outage{down: true}
		return true
	case !o.down || !apierrors.IsForbidden(err) && !apierrors.IsServiceUnavailable(err):
		*o = outage{}
		return false
	case o.answers.IsZero():
		o.answers = now
	}
	return now.Sub(o.answers) < startGrace
}
