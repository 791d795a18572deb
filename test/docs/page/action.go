package page

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// Action is what a test does with a block.
type Action string

// Actions.
const (
	Ignore    Action = "ignore"   // It is neither commands nor a manifest.
	Explain   Action = "explain"  // Its comment says why it is not executed.
	Write     Action = "write"    // It is a file that a later block names.
	Complete  Action = "complete" // It is a part of the last manifest.
	RunEach   Action = "run each" // It has commands and shows their output.
	RunScript Action = "run"      // It is one script.
	Validate  Action = "validate" // It is a manifest.
)

// Runs reports whether b is executed and names a program.
func (b Block) Runs(program string) bool {
	action, err := b.Action()
	words := strings.FieldsFunc(b.Text, func(r rune) bool { return !unicode.IsLetter(r) && r != '-' && r != '_' })
	return err == nil && (action == RunEach || action == RunScript) && slices.Contains(words, program)
}

// Action returns what a test does with b. Every block with commands or a manifest has an action
// other than Ignore, or an error.
func (b Block) Action() (Action, error) {
	switch b.Directive.Name {
	case Skip:
		return Explain, nil
	case File:
		return Write, nil
	case Merge:
		return Complete, nil
	}
	switch b.Language {
	case "console":
		return RunEach, nil
	case "sh":
		return RunScript, nil
	case "yaml":
		return Validate, nil
	case "text", "ini":
		if strings.HasPrefix(b.Text, prompt) || strings.Contains(b.Text, "\n"+prompt) {
			return "", errors.New("the block has commands; its language is console")
		}
		return Ignore, nil
	}
	return "", fmt.Errorf("no action for blocks of language %q", b.Language)
}
