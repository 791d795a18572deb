package workload

import (
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/drover-dev/drover/internal/base/text"
)

// FormatError means that a workload cluster responded in a format that limits can't measure.
type FormatError struct{ Format string }

func (e *FormatError) Error() string {
	return fmt.Sprintf("the workload cluster responded in the format %q instead of JSON", e.Format)
}

// maxFormat is the longest name of a format in an error.
const maxFormat = 100

// measurable requests JSON only, and rejects other formats, which clients would decode whether they
// requested them or not. Two bytes of protobuf can become an object of a kilobyte, and a few lines
// of YAML any number of them.
type measurable struct{ next http.RoundTripper }

func (m *measurable) RoundTrip(r *http.Request) (*http.Response, error) {
	if accept := r.Header.Values("Accept"); slices.ContainsFunc(accept, isBinary) {
		r = r.Clone(r.Context())
		r.Header.Set("Accept", withoutBinary(accept))
	}
	response, err := m.next.RoundTrip(r)
	if err != nil || response.StatusCode >= http.StatusBadRequest { // The bodies of errors are short.
		return response, err
	}
	if err := checkFormat(response.Header); err != nil {
		_ = response.Body.Close()
		return nil, err
	}
	return response, nil
}

// checkFormat names JSON as the format of a response without one, which clients would otherwise
// decode as if it had the format of the request.
func checkFormat(h http.Header) error {
	format := h.Get("Content-Type")
	if format == "" {
		h.Set("Content-Type", runtime.ContentTypeJSON)
		return nil
	}
	media, _, err := mime.ParseMediaType(format)
	if err != nil || media != runtime.ContentTypeJSON && media != "text/plain" {
		return &FormatError{Format: text.TruncateTo(format, maxFormat)}
	}
	return nil
}

// isBinary reports whether a list of formats contains one that is not text.
func isBinary(formats string) bool {
	return strings.Contains(formats, "protobuf") || strings.Contains(formats, "cbor")
}

// withoutBinary removes formats from the values of an Accept header.
func withoutBinary(accept []string) string {
	var formats []string
	for format := range strings.SplitSeq(strings.Join(accept, ","), ",") {
		if !isBinary(format) {
			formats = append(formats, strings.TrimSpace(format))
		}
	}
	if len(formats) == 0 {
		return runtime.ContentTypeJSON
	}
	return strings.Join(formats, ",")
}
