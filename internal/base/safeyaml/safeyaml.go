// Package safeyaml decodes YAML that others wrote. A text can take a thousand times its size when
// it is decoded: it may consist of nothing but structure, or repeat a long value by aliases, which
// become copies in JSON. This package measures a text before it is decoded.
//
// It decodes like sigs.k8s.io/yaml, and it never quotes the text in errors of its own. Use it
// wherever the text doesn't come from the user who runs the program. Start with Unmarshal.
package safeyaml

import (
	"bytes"
	"errors"
	"fmt"

	yamlv2 "go.yaml.in/yaml/v2"
	"sigs.k8s.io/yaml"
)

// Limits of a text. They exceed what any object, chart or kubeconfig contains.
const (
	// MaxValues is how many values a text may have.
	MaxValues = 500_000
	// MaxRepeated is how many values a document with aliases may have, including repeated ones.
	MaxRepeated = 100_000
	// MaxGrowth is how many bytes aliases may add.
	MaxGrowth = 4 << 20
	maxDepth  = 1_000
)

// ErrLimits means that a text exceeds the limits.
var ErrLimits = fmt.Errorf("it has more than %d values, or %d values or %d MiB with those that aliases repeat", MaxValues, MaxRepeated, MaxGrowth>>20)

// errUTF16 keeps texts readable for Check. No tool writes them.
var errUTF16 = errors.New("it is encoded in UTF-16")

// Unmarshal checks a text and decodes it into v.
func Unmarshal(text []byte, v any) error {
	if err := Check(text); err != nil {
		return err
	}
	return yaml.Unmarshal(text, v)
}

// ToJSON checks a text and converts it.
func ToJSON(text []byte) ([]byte, error) {
	if err := Check(text); err != nil {
		return nil, err
	}
	return yaml.YAMLToJSON(text)
}

// separators are in front of each value but the first of a text.
var separators = [][]byte{
	[]byte("\n"), []byte("\r"), []byte("\u0085"), []byte("\u2028"), []byte("\u2029"),
	[]byte(","), []byte("["), []byte("{"), []byte("- "), []byte("? "),
}

// CheckValues returns ErrLimits for a text, in YAML or JSON, that has too many values. It counts
// more values than there are if strings contain separators.
func CheckValues(text []byte) error {
	values := 0
	for _, separator := range separators {
		values += bytes.Count(text, separator)
	}
	if values > MaxValues {
		return ErrLimits
	}
	return nil
}

// Check returns ErrLimits for a text that exceeds the limits. Aliases are followed in the first
// document only, because that is all that is decoded; values are counted in all documents. It
// accepts invalid YAML, which takes no memory: decoding it explains better what is wrong.
func Check(text []byte) error {
	if bytes.HasPrefix(text, []byte{0xff, 0xfe}) || bytes.HasPrefix(text, []byte{0xfe, 0xff}) {
		return errUTF16
	}
	if err := CheckValues(text); err != nil {
		return err
	}
	if bytes.IndexByte(text, '&') < 0 || bytes.IndexByte(text, '*') < 0 {
		return nil // There are no aliases.
	}
	var root node
	if err := yamlv2.Unmarshal(text, &root); err != nil {
		return nil //nolint:nilerr // The caller decodes it and gets the same error.
	}
	m := measure{values: MaxRepeated, bytes: len(text) + MaxGrowth, depth: maxDepth}
	return m.add(&root)
}
