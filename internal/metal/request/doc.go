// Package request reads what clients of the metal API send, and says what is
// wrong with it in the words that they know. It is pure: whatever bytes come
// in, what goes out is a value that makes sense or a refusal that a client can
// be told. It knows no store, no driver and nothing of Kubernetes. Start with
// Decode and OrderOf.
package request

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// maxBody bounds request bodies; userdata of a megabyte may grow sixfold when
// it is written as JSON.
const maxBody = 16 << 20

// Error is a refusal that a client is told about.
type Error struct {
	Status   int
	Messages []string
}

func (e *Error) Error() string {
	return fmt.Sprintf("%d %s: %s", e.Status, http.StatusText(e.Status), strings.Join(e.Messages, "; "))
}

// Refuse makes a refusal with one message.
func Refuse(status int, format string, args ...any) error {
	return &Error{Status: status, Messages: []string{fmt.Sprintf(format, args...)}}
}

// Unprocessable is the refusal of a body that says the wrong things; nil if
// there are none.
func Unprocessable(messages ...string) error {
	if len(messages) == 0 {
		return nil
	}
	return &Error{Status: http.StatusUnprocessableEntity, Messages: messages}
}

// Decode reads a body into v. A body may be missing.
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
	if err := json.Unmarshal(data, v); err != nil {
		return Refuse(http.StatusBadRequest, "The request is not valid JSON: %v", err)
	}
	return nil
}

// problems gathers what is wrong.
type problems []string

// add keeps a message, unless it is empty.
func (p *problems) add(message string) {
	if message != "" {
		*p = append(*p, message)
	}
}
