// Package api defines the JSON bodies of the Packet HTTP API as clients send and read them, one
// file per noun. Its only behavior is decoding the different encodings of old clients. Start with
// Device.
package api

import "time"

// Href is a link to an object.
type Href struct {
	Href string `json:"href"`
}

// Meta describes the position of a page in a list.
type Meta struct {
	First       *Href `json:"first"`
	Last        *Href `json:"last"`
	Previous    *Href `json:"previous"`
	Next        *Href `json:"next"`
	Self        *Href `json:"self"`
	Total       int   `json:"total"`
	CurrentPage int   `json:"current_page"`
	LastPage    int   `json:"last_page"`
}

// Error is the body of every error response.
type Error struct {
	Errors []string `json:"errors"`
}

// Time is a point in time in the API's format, with a precision of seconds.
type Time struct{ time.Time }

// At returns t in the API's format, or nil for the zero time.
func At(t time.Time) *Time {
	if t.IsZero() {
		return nil
	}
	return &Time{t}
}

// MarshalJSON writes RFC 3339 in UTC.
func (t Time) MarshalJSON() ([]byte, error) {
	return []byte(`"` + t.UTC().Format(time.RFC3339) + `"`), nil
}
