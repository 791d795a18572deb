package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// Object is a JSON object. Some clients send it as a string that contains the object, but all of
// them expect an object in responses.
type Object json.RawMessage

// ValueError means that a value is valid JSON but not what the field requires.
type ValueError struct{ Problem string }

func (e *ValueError) Error() string { return e.Problem }

// UnmarshalJSON accepts both encodings. An empty string and null are empty objects.
func (o *Object) UnmarshalJSON(data []byte) error {
	text := string(data)
	if len(data) > 0 && data[0] == '"' {
		if err := json.Unmarshal(data, &text); err != nil {
			return err
		}
	}
	text = strings.TrimSpace(text)
	if text == "" || text == "null" {
		text = "{}"
	}
	var compact bytes.Buffer
	if text[0] != '{' || json.Compact(&compact, []byte(text)) != nil {
		return &ValueError{fmt.Sprintf("%.40q is not a JSON object: customdata and storage must be objects, or strings that contain one", text)}
	}
	*o = compact.Bytes()
	return nil
}

// MarshalJSON writes the object.
func (o Object) MarshalJSON() ([]byte, error) { return json.RawMessage(o).MarshalJSON() }

// ObjectOf returns a stored object. Versions that stored what clients sent left other values, which
// become the object they contain, or an empty one.
func ObjectOf(raw json.RawMessage) Object {
	var o Object
	if o.UnmarshalJSON(raw) != nil {
		return Object("{}")
	}
	return o
}
