package objects

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"sort"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/drover-dev/drover/internal/base/text"
	"github.com/drover-dev/drover/internal/workload/tool"
)

const (
	// minSecretLength is the shortest value that is masked. Shorter ones are no secrets, but parts
	// of ordinary words.
	minSecretLength = 4
	// maxErrorLength limits an error message.
	maxErrorLength = 600
	masked         = "***"
)

// redacted is an error whose text contains no values.
type redacted struct {
	text string
	err  error
}

func (r *redacted) Error() string { return r.text }

func (r *redacted) Unwrap() error { return r.err }

// Redact truncates an error message and masks values in it, which templates, schemas and API
// servers like to quote.
func Redact(err error, values map[string]any) error {
	if err == nil {
		return nil
	}
	message := err.Error()
	for _, value := range secretTexts(values) {
		message = strings.ReplaceAll(message, value, masked)
	}
	return &redacted{text: text.TruncateTo(message, maxErrorLength), err: err}
}

// secretTexts returns the strings in values and their base64 encodings, longest first, so that none
// is masked partially.
func secretTexts(values any) []string {
	var out []string
	var walk func(any)
	add := func(s string) {
		if len(s) >= minSecretLength {
			out = append(out, s, base64.StdEncoding.EncodeToString([]byte(s)))
		}
	}
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			for _, item := range v {
				walk(item)
			}
		case []any:
			for _, item := range v {
				walk(item)
			}
		case string:
			add(v)
			for line := range strings.Lines(v) {
				add(strings.TrimSpace(line))
			}
		case bool, nil:
		default:
			add(fmt.Sprint(v))
		}
	}
	walk(values)
	sort.Slice(out, func(i, j int) bool { return len(out[i]) > len(out[j]) })
	return out
}

// Classify marks errors as terminal that only another package, other values or other options fix.
func Classify(err error) error {
	var known *tool.TerminalError
	switch {
	case err == nil, errors.As(err, &known):
		return err
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err), apierrors.IsRequestEntityTooLargeError(err), apierrors.IsMethodNotSupported(err):
		return &tool.TerminalError{Err: err}
	case isTypeMismatch(err):
		return &tool.TerminalError{Err: err}
	}
	return err
}

// isTypeMismatch reports whether a field has a value of the wrong type. API servers report it as an
// internal error, so only the message identifies it.
func isTypeMismatch(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && status.Status().Code == http.StatusInternalServerError &&
		strings.HasPrefix(status.Status().Message, "failed to create typed patch object")
}
