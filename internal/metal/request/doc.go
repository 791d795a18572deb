// Package request decodes and validates requests to the metal API, with the error messages that
// clients know. It is pure: every input becomes a valid value or an error that can be sent to the
// client. It knows no store, no driver and nothing about Kubernetes. Start with Decode and OrderOf.
package request

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/drover-dev/drover/internal/metal/api"
)

// maxBody bounds request bodies; a megabyte of userdata can grow sixfold in JSON.
const maxBody = 16 << 20

// Error is an error response to a client.
type Error struct {
	Status   int
	Messages []string
}

func (e *Error) Error() string {
	return fmt.Sprintf("%d %s: %s", e.Status, http.StatusText(e.Status), strings.Join(e.Messages, "; "))
}

// Refuse returns an error with one message.
func Refuse(status int, format string, args ...any) error {
	return &Error{Status: status, Messages: []string{fmt.Sprintf(format, args...)}}
}

// Unprocessable returns the error for an invalid body, or nil without messages.
func Unprocessable(messages ...string) error {
	if len(messages) == 0 {
		return nil
	}
	return &Error{Status: http.StatusUnprocessableEntity, Messages: messages}
}

// Decode reads a request body, if there is one, into v.
func Decode(r io.Reader, v any) error {
	data, err := io.ReadAll(io.LimitReader(r, maxBody+1))
	if err != nil {
		return Refuse(http.StatusBadRequest, "Reading the request failed: %v", err)
	}
	if len(data) > maxBody {
		return Refuse(http.StatusRequestEntityTooLarge, "The request is larger than %d bytes", maxBody)
	}
	if strings.TrimSpace(string(data)) == "" {
		return nil
	}
	var invalid *api.ValueError
	err = json.Unmarshal(data, v)
	if errors.As(err, &invalid) {
		return Unprocessable(invalid.Problem)
	}
	if err != nil {
		return Refuse(http.StatusBadRequest, "The request is not valid JSON: %v", err)
	}
	return nil
}

// problems collects validation messages.
type problems []string

// add appends a message unless it is empty.
func (p *problems) add(message string) {
	if message != "" {
		*p = append(*p, message)
	}
}
