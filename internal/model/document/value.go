package document

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strconv"

	"github.com/drover-dev/drover/internal/base/safeyaml"
)

// valueOf decodes a document as kubectl does. Numbers become json.Number.
func valueOf(text []byte) (any, error) {
	data, err := safeyaml.ToJSON(text)
	if err != nil {
		return nil, err
	}
	return decodeJSON(data)
}

// toJSON converts an object to maps, lists, strings, booleans and json.Number.
func toJSON(value map[string]any) (map[string]any, error) {
	data, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	decoded, err := decodeJSON(data)
	if err != nil {
		return nil, err
	}
	object, ok := decoded.(map[string]any)
	if !ok {
		return nil, errors.New("it is null")
	}
	return object, nil
}

func decodeJSON(data []byte) (any, error) {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, err
	}
	return settle(value), nil
}

// settle writes equal numbers alike, and removes null fields.
func settle(value any) any {
	switch value := value.(type) {
	case map[string]any:
		maps.DeleteFunc(value, func(_ string, field any) bool { return field == nil })
		for key, field := range value {
			value[key] = settle(field)
		}
	case []any:
		for i := range value {
			value[i] = settle(value[i])
		}
	case json.Number:
		return settleNumber(value)
	}
	return value
}

func settleNumber(n json.Number) json.Number {
	if whole, err := n.Int64(); err == nil {
		return json.Number(strconv.FormatInt(whole, 10))
	}
	float, err := n.Float64()
	if err != nil {
		return n
	}
	data, err := json.Marshal(float)
	if err != nil {
		return n
	}
	return json.Number(data)
}

// equal compares two settled values.
func equal(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		return ok && maps.EqualFunc(a, b, equal)
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, equal)
	}
	switch b.(type) {
	case map[string]any, []any:
		return false
	}
	return a == b
}

// isScalar reports whether a value is neither an object nor a list.
func isScalar(value any) bool {
	switch value.(type) {
	case map[string]any, []any:
		return false
	}
	return true
}
