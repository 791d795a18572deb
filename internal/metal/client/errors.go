package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"
)

// Kind is what an error means to the one who sent the request.
type Kind string

// The kinds of errors. None of them is final: what is refused now may be granted later.
const (
	// Unavailable: nothing was done, and asking again later may help.
	Unavailable Kind = "Unavailable"
	// RateLimited: nothing was done, and After tells when to ask again.
	RateLimited Kind = "RateLimited"
	// Busy: the object is changing its state, and until then can't do what was asked.
	Busy Kind = "Busy"
	// UnknownOutcome: it may have been done or not. Look before asking again.
	UnknownOutcome Kind = "UnknownOutcome"
	// Capacity: no server is free that matches.
	Capacity Kind = "Capacity"
	// Quota: the project may not have more.
	Quota Kind = "Quota"
	// Invalid: the request makes no sense to the API.
	Invalid Kind = "Invalid"
	// Exists: it was done before.
	Exists Kind = "Exists"
	// NotFound: there is no such object.
	NotFound Kind = "NotFound"
	// Forbidden: the token may not see the object. The API also says so of a device that failed to
	// provision and was taken away.
	Forbidden Kind = "Forbidden"
	// Unauthorized: the token is not valid.
	Unauthorized Kind = "Unauthorized"
)

// Error is what became of a request that did not succeed.
type Error struct {
	Kind         Kind
	Method, Path string
	// Status is that of the answer, 0 if there was none.
	Status int
	// Messages are the API's own words.
	Messages []string
	// After is how long to wait, if the API said so.
	After time.Duration
	// Err is the cause where there was no proper answer.
	Err error
}

func (e *Error) Error() string {
	return fmt.Sprintf("%s %s: %s", e.Method, e.Path, e.Reason())
}

// Reason is the error without the request, for people who know what was tried.
func (e *Error) Reason() string {
	switch {
	case len(e.Messages) > 0:
		return fmt.Sprintf("%s (HTTP %d)", strings.Join(e.Messages, "; "), e.Status)
	case e.Err != nil:
		return describe(e.Err)
	default:
		return fmt.Sprintf("%s (HTTP %d)", http.StatusText(e.Status), e.Status)
	}
}

// describe leaves out what differs from one time to the next, such as local ports, so that a
// failure that lasts reads the same as long as it does.
func describe(err error) string {
	var op *net.OpError
	switch {
	case errors.Is(err, context.DeadlineExceeded), os.IsTimeout(err):
		return "no response in time"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "the connection was closed before the response was complete"
	case errors.As(err, &op):
		return op.Op + ": " + op.Err.Error()
	default:
		return err.Error()
	}
}

func (e *Error) Unwrap() error { return e.Err }

// KindOf returns the kind of err, or "" if err is not from this package.
func KindOf(err error) Kind {
	var e *Error
	if errors.As(err, &e) {
		return e.Kind
	}
	return ""
}

// Is says whether err is of one of the kinds.
func Is(err error, kinds ...Kind) bool {
	for _, k := range kinds {
		if KindOf(err) == k {
			return true
		}
	}
	return false
}

// MissingKeys says that a device was refused because neither the request nor the project has an SSH
// key.
func MissingKeys(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Kind == Invalid && mentions(e.Messages, "ssh key")
}

// unsent is the error of a request that got no answer. If not even a connection was made, nothing
// was done.
func unsent(method string, err error) *Error {
	kind := interrupted(method)
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "dial" {
		kind = Unavailable
	}
	var dns *net.DNSError
	if errors.As(err, &dns) {
		kind = Unavailable
	}
	return &Error{Kind: kind, Err: err}
}

// interrupted is the kind of a request whose answer was lost. Only POST can't be repeated at will.
func interrupted(method string) Kind {
	if method == http.MethodPost {
		return UnknownOutcome
	}
	return Unavailable
}
