package rest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"unicode"

	"github.com/drover-dev/drover/internal/base/text"
)

// maxMessage bounds what a forge contributes to an error, in bytes.
const maxMessage = 300

// Error is an answer that is not a success.
type Error struct {
	Doing  string
	Host   string
	Status int
	// Message is what the forge said: one printable, bounded line.
	Message string
}

func (e *Error) Error() string {
	message := fmt.Sprintf("%s: %s answered %d %s", e.Doing, e.Host, e.Status, http.StatusText(e.Status))
	if e.Message != "" {
		message += ": " + e.Message
	}
	if e.Status == http.StatusUnauthorized || e.Status == http.StatusForbidden {
		message += "; check the token and its permissions"
	}
	return message
}

// HasStatus reports whether an error is an answer with a status.
func HasStatus(err error, status int) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.Status == status
}

// fail turns a response into an error. The transport bounds the body.
func (c *Client) fail(r Request, response *http.Response) error {
	e := &Error{Doing: r.Doing, Host: c.base.Host, Status: response.StatusCode}
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return e
	}
	message := messageOf(body)
	if c.options.Secret != "" {
		message = strings.ReplaceAll(message, c.options.Secret, "[redacted]")
	}
	e.Message = text.TruncateTo(strings.Join(strings.FieldsFunc(message, isSeparator), " "), maxMessage)
	return e
}

func isSeparator(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }

// messageOf returns the field that all forges have for people. GitLab puts a list or an object
// there for some errors, and error for others. Anything else, such as a page of a proxy, is left
// out.
func messageOf(body []byte) string {
	var said struct {
		Message json.RawMessage `json:"message"`
		Error   string          `json:"error"`
	}
	if json.Unmarshal(body, &said) != nil {
		return ""
	}
	var message string
	switch {
	case len(said.Message) == 0:
		return said.Error
	case json.Unmarshal(said.Message, &message) == nil:
		return message
	default:
		return string(said.Message)
	}
}
