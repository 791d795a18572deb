package manifests

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/json"

	"github.com/drover-dev/drover/internal/base/safeyaml"
)

// variable matches ${NAME} and ${NAME:=default}. A leading $ escapes it.
var variable = regexp.MustCompile(`\$?\$\{([A-Za-z_][A-Za-z0-9_]*)(:=([^}]*))?\}`)

// substituteAll replaces the variables in all strings of an object. It doesn't change keys, so that
// a value can't turn a field into another.
func (v values) substituteAll(object map[string]any) error {
	for _, key := range slices.Sorted(maps.Keys(object)) {
		filled, err := v.substituteIn(object[key])
		if err != nil {
			return err
		}
		object[key] = filled
	}
	return nil
}

func (v values) substituteIn(in any) (any, error) {
	switch in := in.(type) {
	case map[string]any:
		return in, v.substituteAll(in)
	case []any:
		for i := range in {
			filled, err := v.substituteIn(in[i])
			if err != nil {
				return nil, err
			}
			in[i] = filled
		}
		return in, nil
	case string:
		return v.text(in)
	default:
		return in, nil
	}
}

// text replaces the variables in a string. A string that is only a variable takes the type of its
// value, which can be a number.
func (v values) text(in string) (any, error) {
	if match := variable.FindStringSubmatch(in); len(match) > 0 && match[0] == in && !strings.HasPrefix(in, "$$") {
		return v.lookup(match)
	}
	var failure error
	out := variable.ReplaceAllStringFunc(in, func(match string) string {
		if strings.HasPrefix(match, "$$") {
			return match[1:]
		}
		value, err := v.lookup(variable.FindStringSubmatch(match))
		if err != nil {
			failure = err
			return ""
		}
		text, err := asText(value)
		if err != nil {
			failure = fmt.Errorf("variable %q: %w", variable.FindStringSubmatch(match)[1], err)
		}
		return text
	})
	return out, failure
}

// lookup returns the value for a match of variable.
func (v values) lookup(match []string) (any, error) {
	name, hasDefault, text := match[1], match[2] != "", match[3]
	if value, ok := v.substitute[name]; ok && value != nil {
		return plainJSON(value)
	}
	if !hasDefault {
		return nil, fmt.Errorf("variable %q has no value and no default; add it to substitute", name)
	}
	var value any
	if err := safeyaml.Unmarshal([]byte(text), &value); err != nil {
		return text, nil //nolint:nilerr // a plain string
	}
	switch value.(type) {
	case bool, float64, string:
		return plainJSON(value)
	default:
		return text, nil
	}
}

// plainJSON returns a copy of a value with the types that objects consist of.
func plainJSON(value any) (any, error) {
	data, err := json.Marshal(value)
	if err != nil {
		return nil, errors.New("substitute value is not valid JSON")
	}
	var out any
	if err := json.Unmarshal(data, &out); err != nil {
		return nil, errors.New("substitute value is not valid JSON")
	}
	return out, nil
}

func asText(value any) (string, error) {
	switch value := value.(type) {
	case string:
		return value, nil
	case bool, int64:
		return fmt.Sprint(value), nil
	case float64:
		return strconv.FormatFloat(value, 'f', -1, 64), nil // without an exponent
	default:
		return "", errors.New("a map or list can only replace an entire string")
	}
}
