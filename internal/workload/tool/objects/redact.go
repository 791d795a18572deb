package objects

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"sort"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/drover-dev/drover/internal/workload/tool"
)

const (
	// shortest is how long a value must be to be looked for in messages. Shorter ones are no secrets, but parts of every other word.
	shortest = 4
	// longest is how much of a message is kept.
	longest = 600
	masked  = "***"
)

// redacted is an error whose text has no values in it.
type redacted struct {
	text string
	err  error
}

func (r *redacted) Error() string { return r.text }

func (r *redacted) Unwrap() error { return r.err }

// Redact bounds what templates, schemas and API servers say, and takes values out of it, for they like to quote them.
func Redact(err error, values map[string]any) error {
	if err == nil {
		return nil
	}
	message := err.Error()
	for _, value := range leaves(values) {
		message = strings.ReplaceAll(message, value, masked)
	}
	if len(message) > longest {
		message = strings.ToValidUTF8(message[:longest], "") + "…"
	}
	return &redacted{text: message, err: err}
}

// leaves are the texts in values and their base64, the longest first, so that none is cut in two by another.
func leaves(values any) []string {
	var out []string
	var walk func(any)
	add := func(s string) {
		if len(s) >= shortest {
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

// Classify marks errors that only another package, other values or other options mend.
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

// isTypeMismatch says that a field has a value of another type than its kind says. API servers have no code of their own for that: they say
// that something went wrong inside of them, so there is but the text to go by.
func isTypeMismatch(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && status.Status().Code == http.StatusInternalServerError &&
		strings.HasPrefix(status.Status().Message, "failed to create typed patch object")
}
