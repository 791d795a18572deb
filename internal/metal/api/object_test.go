package api

import (
	"encoding/json"
	"errors"
	"testing"
)

// FuzzObject checks that every value becomes an object or an error, and that an object stays the
// same when it is stored and read again.
func FuzzObject(f *testing.F) {
	for _, seed := range []string{`{"a":1}`, `"{\"a\": 1}"`, `""`, `null`, `"null"`, `[1]`, `"text"`, `7`, `"{\"a\":"`, `"\ud800"`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var o Object
		var invalid *ValueError
		err := json.Unmarshal(data, &o)
		if errors.As(err, &invalid) || err != nil && !json.Valid(data) {
			return
		}
		if err != nil {
			t.Fatalf("%q: %v", data, err)
		}
		var object map[string]any
		if json.Valid(data) && len(o) > 0 && json.Unmarshal(o, &object) != nil {
			t.Fatalf("%q: got %q, want an object", data, o)
		}
		if again := ObjectOf(json.RawMessage(o)); len(o) > 0 && string(again) != string(o) {
			t.Fatalf("%q: got %q, then %q, want the same", data, o, again)
		}
	})
}
