package metal

import (
	"fmt"
	"net/http"
	"strings"
)

// Error is a refusal that a client is told about.
type Error struct {
	Status   int
	Messages []string
}

func (e *Error) Error() string {
	return fmt.Sprintf("%d %s: %s", e.Status, http.StatusText(e.Status), strings.Join(e.Messages, "; "))
}

func refuse(status int, format string, args ...any) error {
	return &Error{Status: status, Messages: []string{fmt.Sprintf(format, args...)}}
}

// unprocessable is the refusal of a body that says the wrong thing.
func unprocessable(messages ...string) error {
	if len(messages) == 0 {
		return nil
	}
	return &Error{Status: http.StatusUnprocessableEntity, Messages: messages}
}

// Refusals whose words clients know.
var (
	errNotFound  = &Error{Status: http.StatusNotFound, Messages: []string{"Not found"}}
	errDenied    = &Error{Status: http.StatusForbidden, Messages: []string{"Access denied for the current authentication token"}}
	errToken     = &Error{Status: http.StatusUnauthorized, Messages: []string{"Invalid authentication token"}}
	errOhSnap    = &Error{Status: http.StatusInternalServerError, Messages: []string{"Oh snap, something went wrong! We've logged the error and will take a look - please reach out to us if you continue having trouble."}}
	errRateLimit = &Error{Status: http.StatusTooManyRequests, Messages: []string{"Rate limit exceeded, please try again later"}}
)
