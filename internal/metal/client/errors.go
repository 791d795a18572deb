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

// Kind classifies an error for the caller.
type Kind string

// Kinds of errors. None is final: a request that is rejected now may be accepted later.
const (
	// Unavailable: nothing was done; retry later.
	Unavailable Kind = "Unavailable"
	// RateLimited: nothing was done; retry after After.
	RateLimited Kind = "RateLimited"
	// Busy: the object is changing its state and can't be changed until then.
	Busy Kind = "Busy"
	// UnknownOutcome: the request may have been executed. Check before retrying.
	UnknownOutcome Kind = "UnknownOutcome"
	// Capacity: no matching server is available.
	Capacity Kind = "Capacity"
	// Quota: the project has reached its limit.
	Quota Kind = "Quota"
	// Invalid: the API rejects the request.
	Invalid Kind = "Invalid"
	// Exists: the object already exists.
	Exists Kind = "Exists"
	// NotFound: the object does not exist.
	NotFound Kind = "NotFound"
	// Forbidden: the token may not access the object. The API also reports this for a device that
	// was removed after failing to provision.
	Forbidden Kind = "Forbidden"
	// Unauthorized: the token is not valid.
	Unauthorized Kind = "Unauthorized"
)

// Error describes a failed request.
type Error struct {
	Kind         Kind
	Method, Path string
	// Status is the HTTP status, or 0 without a response.
	Status int
	// Messages are the API's error messages.
	Messages []string
	// After is how long to wait, if the API specifies it.
	After time.Duration
	// Err is the cause if there was no proper response.
	Err error
}

func (e *Error) Error() string {
	return fmt.Sprintf("%s %s: %s", e.Method, e.Path, e.Reason())
}

// Reason returns the error without the request, for callers that name the operation themselves.
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

// describe omits details that vary, such as local ports, so that a lasting failure keeps the same
// message.
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

// Is reports whether err is of one of the kinds.
func Is(err error, kinds ...Kind) bool {
	for _, k := range kinds {
		if KindOf(err) == k {
			return true
		}
	}
	return false
}

// MissingKeys reports whether a device was rejected because neither the request nor the project has
// an SSH key.
func MissingKeys(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Kind == Invalid && mentions(e.Messages, "ssh key")
}

// unsent returns the error of a request without a response. If no connection was made, nothing was
// done.
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

// interrupted returns the kind of a request whose response was lost. Only POST can't be repeated
// safely.
func interrupted(method string) Kind {
	if method == http.MethodPost {
		return UnknownOutcome
	}
	return Unavailable
}
