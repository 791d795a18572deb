// Package yamltest attacks readers of YAML with a text that grows by aliases. Start with Attack.
package yamltest

import (
	"runtime"
	"strings"
	"testing"
)

// Sizes of the attack: 100 MB of JSON from 60 KB of YAML. A reader may allocate a fifth of it.
const (
	length  = 50_000
	aliases = 2_000
	allowed = length * aliases / 5
)

// Text returns a mapping that repeats a long value by aliases. It ends with a line break.
func Text() string {
	return "long: &long " + strings.Repeat("x", length) + "\nrepeated: [" + strings.Repeat("*long,", aliases) + "]\n"
}

// Attack fails a test if read accepts its input, which may contain Text, or allocates as much
// memory as the input asks for.
func Attack(t *testing.T, read func() error) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	err := read()
	runtime.ReadMemStats(&after)
	if err == nil {
		t.Error("accepted hostile input")
	}
	if size := after.TotalAlloc - before.TotalAlloc; size > allowed {
		t.Errorf("allocated %d MB (error: %v)", size/1e6, err)
	}
}
